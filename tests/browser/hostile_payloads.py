"""Sixty attacks for a page: each counts in ``window.pwned`` when its script runs, most without a click.

They count in the outermost window: a frame that wrote its own count there would take back what others had counted.
"""

from __future__ import annotations

RUN = "window.top.pwned=(window.top.pwned||0)+1"

_ELEMENTS = [
    "<script>{}</script>",
    "<ScRiPt>{}</sCrIpT>",
    "<script >{}</script >",
    "<scr<script>ipt>{}</scr</script>ipt>",
    '<img src="x" onerror="{}">',
    "<img src=x onerror='{}'>",
    '<img/src="x"/onerror="{}">',
    '<IMG SRC=x oNeRrOr="{}">',
    '<img src="x` `" onerror="{}">',
    '<svg onload="{}"></svg>',
    "<svg><script>{}</script></svg>",
    '<svg><animate onbegin="{}" attributeName="x" dur="1s"></svg>',
    '<svg><set onbegin="{}" attributeName="x" to="1"></svg>',
    '<svg><image href="x" onerror="{}"></svg>',
    '<svg><foreignObject><img src=x onerror="{}"></foreignObject></svg>',
    '<math><mtext><img src=x onerror="{}"></mtext></math>',
    '<math><mglyph><style><img title="</style><img src=x onerror={}>"></math>',
    '<iframe srcdoc="<script>parent.{}</script>"></iframe>',
    '<iframe src="javascript:parent.{}"></iframe>',
    '<object data="javascript:{}"></object>',
    '<embed src="javascript:{}">',
    '<details open ontoggle="{}"><summary>s</summary></details>',
    '<video><source onerror="{}"></video>',
    '<audio src=x onerror="{}"></audio>',
    '<body onload="{}">',
    '<input autofocus onfocus="{}">',
    '<select autofocus onfocus="{}"></select>',
    '<textarea autofocus onfocus="{}"></textarea>',
    '<marquee onstart="{}">x</marquee>',
    '<div style="animation:mmsp-pulse 1s" onanimationstart="{}">x</div>',
    '<style>@keyframes k{{}}</style><div style="animation-name:k" onanimationstart="{}"></div>',
    '<link rel="stylesheet" href="x" onerror="{}">',
    '<form><button formaction="javascript:{}">x</button></form>',
    '<a href="javascript:{}">x</a>',
    '<template shadowrootmode="open"><img src=x onerror="{}"></template>',
    '<noscript><p title="</noscript><img src=x onerror={}>">',
    '<textarea></textarea><img src=x onerror="{}">',
    '</pre></code></div><img src=x onerror="{}">',
    '"><img src=x onerror="{}">',
    '\'><img src=x onerror="{}">',
    '" onmouseover="{}" autofocus onfocus="{}" tabindex="1',
    '--><img src=x onerror="{}"><!--',
    ']]><img src=x onerror="{}">',
    "</script><script>{}</script>",
    '</style><img src=x onerror="{}">',
    '</textarea><img src=x onerror="{}">',
    '</title><img src=x onerror="{}">',
    "<base href='javascript:{}//'>",
    "<meta http-equiv=refresh content='0;url=javascript:{}'>",
]
_TEXTS = [
    '![x](x" onerror="{})',
    "[x](javascript:{})",
    "[x](  JaVaScRiPt:{})",
    "[x](data:text/html,<script>parent.{}</script>)",
    "<javascript:{}>",
    '```html" onmouseover="{}\n</code></pre><img src=x onerror="{}">\n```',
    '| a | <img src=x onerror="{}"> |\n|---|---|\n| b | c |',
    "$\\href{{javascript:{}}}{{x}}$",
    "javascript:{}",
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{}'/>",
    "data:text/html;base64,PHNjcmlwdD5wYXJlbnQucHduZWQ9MTwvc2NyaXB0Pg==",
]
PAYLOADS = [template.replace("{}", RUN).replace("{{", "{").replace("}}", "}") for template in _ELEMENTS + _TEXTS]
assert len(PAYLOADS) == 60

RUNNING = (
    0, 1, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 17, 18, 21, 22, 23, 30, 35, 36, 37, 38, 39,
    41, 42, 43, 44, 45, 46, 52, 54, 55,
)  # fmt: skip
"""Those that run by themselves when they are put into a page as they are: without a click, and without the focus."""


def marked(number: int) -> str:
    """A payload that tells which one it is when it runs: its number comes into ``window.ran``."""
    return PAYLOADS[number].replace(RUN, f"window.top.ran=(window.top.ran||[]).concat({number})")


ALL_RAN = f"() => {list(RUNNING)}.every(number => (window.ran || []).includes(number))"
"""A condition of a page: each of them has run."""
