"""Scripts that measure an inspector in its page: for tests and for benchmarks."""

SPY = """(() => {
    window.wire = [];
    const take = WebSocket.prototype.send;
    const seen = new WeakSet();
    WebSocket.prototype.send = function (data) {
        if (!seen.has(this)) {
            seen.add(this);
            this.addEventListener("message", (event) => {
                const size = event.data.byteLength ?? event.data.length;
                const text = event.data.byteLength ? new TextDecoder().decode(event.data) : event.data;
                if (text.includes("comm_")) window.wire.push(size);
            });
        }
        return take.call(this, data);
    };
})()"""
"""Keeps the size of each message of a widget that comes from the kernel in ``window.wire``."""

PAINTED = """() => {
    new MutationObserver(() => {
        if (!window.painted && document.querySelector('.mmsp-inspector .row.answer .body')) {
            requestAnimationFrame(() => (window.painted = performance.now()));
        }
    }).observe(document.body, {childList: true, subtree: true});
}"""
"""Keeps in ``window.painted`` when the first answer was drawn."""
