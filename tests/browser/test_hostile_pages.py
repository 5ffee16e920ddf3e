"""Sixty attacks in every page that is made of a conversation: none runs. A control shows that each would be noticed.

The pages' content security policies are switched off here: what holds has to hold without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import inspected
import pytest
from hostile_payloads import ALL_RAN, PAYLOADS, RUN, RUNNING, marked
from playwright.sync_api import BrowserContext, Page, expect

from mmsp_nb.notebook.assets import bundle
from mmsp_nb.notebook.formulas import mathml
from mmsp_nb.notebook.markdown import to_html
from mmsp_nb.traces import TracePage

pytestmark = pytest.mark.browser

FRAME = "<!doctype html><meta charset=utf-8><title>t</title><body>"
STRANGE = """() => [...document.body.querySelectorAll('*')].filter(one =>
    ['IFRAME', 'OBJECT', 'EMBED', 'BASE', 'META', 'FORM', 'MARQUEE', 'VIDEO'].includes(one.tagName.toUpperCase())
    || (one.localName === 'script' && !one.src.endsWith('/traces.js'))
    || [...one.attributes].some(a => a.name.startsWith('on')
        || (/href|src|action|data$|srcdoc|cite|poster/.test(a.name) && /^\\s*(javascript|data:text)/i.test(a.value)))
    || (one.localName === 'img' && !/^data:image\\/(png|jpeg|gif|webp);base64,/.test(one.getAttribute('src')))
).map(one => one.outerHTML.slice(0, 200))"""


@pytest.fixture
def context(browser: Any) -> Iterator[BrowserContext]:
    context = browser.new_context(bypass_csp=True)
    yield context
    context.close()


def nothing_runs(page: Page) -> None:
    """Open what is folded, point at everything, and see that nothing has run and nothing strange stands there."""
    page.evaluate("() => document.querySelectorAll('details').forEach(one => (one.open = true))")
    page.evaluate(
        """() => document.querySelectorAll('body *').forEach(one => {
            for (const kind of ['mouseover', 'focus', 'animationstart', 'toggle'])
                one.dispatchEvent(new Event(kind, {bubbles: true}));
        })"""
    )
    assert page.evaluate(STRANGE) == []
    page.evaluate("() => new Promise(done => setTimeout(done, 200))")  # for images that would fail to load
    assert page.evaluate("() => [window.pwned ?? null, window.ran ?? null]") == [None, None]


def test_each_attack_would_be_noticed(context: BrowserContext) -> None:
    page = context.new_page()
    page.set_content(FRAME)
    for number in RUNNING:
        page.evaluate(
            """html => {
                const place = document.createElement('div');
                document.body.append(place);
                place.innerHTML = html;
                for (const script of place.querySelectorAll('script')) {
                    const again = document.createElement('script');
                    again.textContent = script.textContent;
                    script.replaceWith(again);
                }
            }""",
            marked(number),
        )
    page.wait_for_function(ALL_RAN)


@pytest.mark.parametrize("view", ["export", "twin", "text"])
def test_static_pages(context: BrowserContext, view: str, tmp_path: Path) -> None:
    page = context.new_page()
    # the static view shows the last items only, so each attack gets one of its own
    chats = [inspected.hostile(PAYLOADS)] if view == "export" else [lonely(bad) for bad in PAYLOADS]
    made = {
        "export": lambda chat: chat.export(format="html"),
        "twin": lambda chat: chat._repr_html_(),
        "text": lambda chat: "".join(to_html(turn.text, formula=mathml) for turn in chat.turns),
    }[view]
    path = tmp_path / "page.html"
    path.write_text(("" if view == "export" else FRAME) + "".join(map(made, chats)), encoding="utf-8")
    page.goto(path.as_uri())
    assert page.locator("body").inner_text().count(RUN) >= 55, "what links lead to is left out, the rest can be read"
    nothing_runs(page)


def lonely(bad: str) -> Any:
    """A conversation of one turn, with the attack in every place, and without branches."""
    chat = inspected.hostile([bad] * 5)
    chat.turns = chat._branches[chat.branch] = chat.turns[-1:]
    return chat


def test_the_page_of_traces_and_its_file_names(context: BrowserContext, tmp_path: Path) -> None:
    chat = inspected.hostile(PAYLOADS)
    names = [f"{number}{bad.replace('/', '|')[:120]}" for number, bad in enumerate(PAYLOADS)]
    for name in names[1:]:
        (tmp_path / f"{name}.json").write_text("{}")
    chat.save(tmp_path / f"{names[0]}.jsonl")
    with TracePage(tmp_path) as served:
        page = context.new_page()
        page.goto(served.url)
        buttons = page.locator(".names button")
        expect(buttons).to_have_count(60)
        buttons.filter(has_text="0<script>").first.click()
        expect(page.locator(".row").first).to_be_visible()
        listing = page.locator(".list")
        seen: set[str] = set()
        everything = len(PAYLOADS) * 9
        listing.evaluate("list => { list.scrollTop = 0; }")
        for _ in range(400):
            page.wait_for_function("() => !document.querySelector('.row.waiting')")
            page.evaluate("() => document.querySelectorAll('.toggle[aria-expanded=false]').forEach(one => one.click())")
            seen |= set(page.evaluate("() => [...document.querySelectorAll('.row')].map(row => row.dataset.row)"))
            if len(seen) >= everything:
                break
            if listing.evaluate("list => list.scrollTop + list.clientHeight >= list.scrollHeight - 2"):
                listing.evaluate("list => { list.scrollTop = 0; }")  # it was still being drawn
                continue
            listing.evaluate("list => { list.scrollTop += list.clientHeight * 0.8; }")
        assert len(seen) >= everything, "not everything was looked at"
        nothing_runs(page)
        buttons.filter(has_text="5<img").first.click()  # a file that is no trace: its name stands in the error
        expect(page.locator(".view")).to_contain_text("5<img")
        nothing_runs(page)


MUTATING = [
    "<svg></p><style><a id='</style><img src=1 onerror=window.pwned=1>'>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=window.pwned=1&gt;'>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=window.pwned=1>",
    "<math><annotation-xml encoding='text/html'><img src=x onerror=window.pwned=1></annotation-xml></math>",
    "<math><maction actiontype='statusline#x' xlink:href='javascript:window.pwned=1'>x</maction></math>",
    "<math href='javascript:window.pwned=1'><mi>x</mi></math>",
    "<span class='mmsp-k jp-Dialog' style='position:fixed;inset:0' id='x' data-x='y'>x</span>",
    "<a href='https://example.org' onclick='window.pwned=1' target='_self'>x</a>",
    "<input type='image' src='x' onerror='window.pwned=1'>",
]


def test_the_sanitiser_of_the_page_holds_by_itself(context: BrowserContext) -> None:
    page = context.new_page()
    page.set_content(FRAME)
    code = bundle("widget.js").replace("export default { render };", "window.sanitized = sanitized;")
    page.add_script_tag(content=code, type="module")
    page.wait_for_function("() => window.sanitized")
    page.evaluate("() => document.querySelectorAll('script').forEach(one => one.remove())")
    for bad in [*PAYLOADS, *MUTATING]:
        page.evaluate("html => document.body.append(window.sanitized(html))", bad)
    nothing_runs(page)
    names = "() => [...document.body.querySelectorAll('*')].flatMap(one => [...one.attributes].map(a => a.name))"
    kept = set(page.evaluate(names))
    links = {"data-lm-suppress-shortcuts", "href", "rel", "target", "title"}
    assert kept <= links | {"checked", "class", "disabled", "type", "start"}
    assert page.evaluate("() => document.querySelectorAll('.jp-Dialog, [target=_self]').length") == 0
    html = mathml(r"\frac{a}{b}", True).strip()
    drawn = "html => { const d = document.createElement('div'); d.append(window.sanitized(html)); return d.innerHTML; }"
    assert page.evaluate(drawn, html) == html


def test_names_of_attached_files(context: BrowserContext) -> None:
    page = context.new_page()
    page.set_content(FRAME)
    code = bundle("widget.js").replace("export default { render };", "window.mount = mount;")
    page.add_script_tag(content=code, type="module")
    page.wait_for_function("() => window.mount")
    page.evaluate("() => document.querySelectorAll('script').forEach(one => one.remove())")
    page.evaluate(
        """() => {
            const root = document.createElement('div');
            document.body.append(root);
            window.mount(root, {send: message => (window.sent = message), receive: take => (window.take = take)});
            window.take({op: 'state', title: 't', model: 'm', branch: 'main', branches: [], bars: [], kinds: [],
                waiting: [], turns: 0, writable: true, files: true, running: false, cost: null});
        }"""
    )
    box = page.get_by_label("Your message")
    seen = 0
    for start in range(0, len(PAYLOADS), 10):
        some = PAYLOADS[start : start + 10]
        files = [{"name": bad, "mimeType": "text/plain", "buffer": b"x"} for bad in some]
        page.locator("input[type=file]").set_input_files(files)
        expect(page.locator(".strip .file")).to_have_count(10)
        seen += page.evaluate(
            "() => [...document.querySelectorAll('.filename')].filter(one => one.textContent.includes('pwned')).length"
        )
        page.locator("input[type=file]").set_input_files([{"name": some[0], "mimeType": "", "buffer": b"\0\xff"}])
        expect(page.locator(".problem")).to_be_visible()
        nothing_runs(page)
        box.press("Enter")
        page.wait_for_function("() => window.sent.op === 'ask'")
        assert page.evaluate("() => window.sent.files.length") == 10
        page.evaluate("() => window.take({op: 'asked', id: window.sent.id})")
        page.evaluate("name => window.take({op: 'written', path: name, full: name})", some[0])
        expect(page.locator(".strip .file")).to_have_count(0)
    assert seen >= 50
    nothing_runs(page)
