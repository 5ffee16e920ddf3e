// Files that a person attaches to a question: what they are is told by their bytes, before anything is sent.

export const LIMITS = { files: 10, picture: 25e6, sent: 1.4e6, side: 1568, text: 1e6, total: 6e6 };
// `sent`: a larger picture is made smaller here. `total`: what one message to the kernel should hold at most.

const letters = (bytes, from, to) => String.fromCharCode(...bytes.subarray(from, to));

/** The MIME type of a picture that models take, by its first bytes; null for all else. */
export function sniff(bytes) {
  if (letters(bytes, 0, 8) === "\x89PNG\r\n\x1a\n") return "image/png";
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return "image/jpeg";
  if (["GIF87a", "GIF89a"].includes(letters(bytes, 0, 6))) return "image/gif";
  if (letters(bytes, 0, 4) === "RIFF" && letters(bytes, 8, 12) === "WEBP") return "image/webp";
  return null;
}

const megabytes = (size) => `${(size / 1e6).toFixed(1)} MB`;

/** What a file is: `{kind: "image", mime}` or `{kind: "text", text}`. Throws an Error of one line that names it. */
export function examine(name, bytes) {
  const mime = sniff(bytes);
  if (mime) {
    if (bytes.length > LIMITS.picture) throw new Error(`${name} has ${megabytes(bytes.length)}; pictures may have ${LIMITS.picture / 1e6} MB`);
    return { kind: "image", mime };
  }
  let text = null;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // not UTF-8
  }
  if (text === null || text.includes("\0")) {
    throw new Error(`${name} is neither a picture (PNG, JPEG, GIF, WebP) nor text in UTF-8`);
  }
  if (!text.trim()) throw new Error(`${name} is empty`);
  if (bytes.length > LIMITS.text) {
    throw new Error(`${name} has ${megabytes(bytes.length)}; text files may have 1 MB: read it in a cell and write {{its_name}}`);
  }
  return { kind: "text", text };
}

/** Why one more attachment of `size` cannot be taken; an empty text when it can. */
export function refusal(attachments, name, size) {
  if (attachments.length >= LIMITS.files) return `${name} is left out: ${LIMITS.files} files at most`;
  const total = attachments.reduce((sum, one) => sum + one.size, size);
  return total > LIMITS.total ? `${name} is left out: one question can carry ${LIMITS.total / 1e6} MB` : "";
}

export function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** A picture in at most `LIMITS.side` pixels, as bytes and type. */
async function smaller(bytes, mime) {
  const bitmap = await createImageBitmap(new Blob([bytes], { type: mime }));
  const scale = Math.min(1, LIMITS.side / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff"; // JPEG knows no transparency
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.9));
  return [new Uint8Array(await blob.arrayBuffer()), "image/jpeg"];
}

/** Reads a `File`: `{name, kind, size, text}` or `{name, kind, size, data}` with a data URL. Throws as `examine` does. */
export async function read(file) {
  const name = file.name || "pasted picture";
  if (file.size > LIMITS.picture) throw new Error(`${name} has ${megabytes(file.size)}; that is too large to attach`);
  let bytes = new Uint8Array(await file.arrayBuffer());
  const found = examine(name, bytes);
  if (found.kind === "text") return { name, kind: "text", size: bytes.length, text: found.text };
  let { mime } = found;
  if (bytes.length > LIMITS.sent) {
    try {
      [bytes, mime] = await smaller(bytes, mime);
    } catch {
      throw new Error(`${name} is no picture that this browser can read`);
    }
  }
  return { name, kind: "image", size: bytes.length, data: `data:${mime};base64,${base64(bytes)}` };
}
