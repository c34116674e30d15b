"""Pages in a real browser: nothing cut, nothing overlaps, no request, all by keys.

`make browser` runs this, apart from `make test`: it takes Chromium, which no Python package brings.
"""

import shutil
from functools import partial

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.simulate.generators import expansion
from tests.view.test_page import HOSTILE

pytestmark = pytest.mark.browser
WIDTHS = (390, 820, 1400)
FOCUS = """() => { const now = document.activeElement;
  return [now.tagName, [...document.querySelectorAll("*")].indexOf(now)]; }"""

CUT = """() => [...document.querySelectorAll("body *")].filter((one) => {
  const box = one.getBoundingClientRect();
  if (!one.checkVisibility() || !box.width) return false;
  if (one.closest(".scroll > *, .skip, .domains, svg")) return false;
  return box.left < -0.5 || box.right > innerWidth + 0.5;
}).map((one) => one.outerHTML.slice(0, 120))"""

OVERLAPS = """() => {
  const named = "h1, h2, h3, p, b, figcaption, dt, dd, th, td, li, caption, summary, .axis span";
  const words = [...document.querySelectorAll(named)].filter((one) =>
    one.checkVisibility() && one.getBoundingClientRect().height && !one.closest(".skip"));
  const boxes = words.map((one) => one.getBoundingClientRect());
  const found = [];
  words.forEach((one, i) => words.slice(i + 1, i + 60).forEach((other, k) => {
    if (one.contains(other) || other.contains(one)) return;
    const [a, b] = [boxes[i], boxes[i + 1 + k]];
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1 && down > 2) found.push([one.textContent, other.textContent]);
  }));
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    from playwright import sync_api  # make browser installs it

    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    assert found, "Chromium is not here: on Debian, apt-get install chromium"
    with sync_api.sync_playwright() as playing:
        running = playing.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()


def broken():
    """A cluster that cannot be mended, whose names are hostile."""
    names = [f"{one}{i}" for i, one in enumerate(HOSTILE) if one != "\ud800"]
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((len(names), 2), 10.0),
        load=np.full((30, 2), 2.9),
        dimensions=("cpu", HOSTILE[0]),
        node_names=names,
        placement=[[i % 4, (i + 1) % 4] for i in range(30)],
        alive=[i > 0 for i in range(len(names))],
        domains={"zone": [names[i % 3] for i in range(len(names))]},
        rules=[ek.Rule(spread={"zone": 1})],
    )
    return ek.solve(cluster, goals=ek.Goals(level=0.0), limits=ek.Limits(moves=3))


def usual(**sizes):
    return ek.solve(expansion(**sizes), goals=ek.Goals(level=0.05))


def one_node():
    return ek.solve(ek.Cluster.from_arrays(capacity=[[1.0]], load=[[0.5]], placement=[[0]]))


def swept(cluster):
    return ek.sweep(cluster, ["zone", "node", "zone pairs"], recovery=ek.Throttle(node_in=1))


def played(cluster):
    lost = ek.simulate.At(60.0, ek.Changes(down=[0]))
    back = ek.simulate.At(1800.0, ek.Changes(up=[0]))
    return ek.simulate.play(cluster, [lost, back], until=3600.0)


RESULTS = {
    "usual": partial(usual, partitions=2000, nodes=60, zones=5),
    "many nodes": partial(usual, partitions=5000, nodes=700, zones=13, dimensions=6),
    "broken": broken,
    "one node": one_node,
    "plan": lambda: usual(partitions=2000, nodes=60, zones=5).plan(throttle=ek.Throttle(node_in=2)),
    "hostile plan": lambda: broken().plan(),
    "sweep": lambda: swept(expansion(300, 20, 5)),
    "hostile sweep": lambda: swept(broken().cluster),
    "frontier": lambda: ek.frontier(expansion(300, 20, 5), points=5),
    "history": lambda: played(expansion(300, 20, 5)),
    "hostile history": lambda: played(broken().cluster),
}


@pytest.fixture(scope="module", params=RESULTS)
def report(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("reports") / "report.html"
    RESULTS[request.param]().report(path)
    return path.as_uri()


@pytest.fixture
def opened(browser, report):
    """Open the page at a width, and hand out what it asked for and said."""
    pages = []

    def open_at(width, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.heard = []
        page.on("request", lambda asked: page.heard.append(asked.url))
        page.on("console", lambda said: page.heard.append(said.text))
        page.on("pageerror", lambda fault: page.heard.append(str(fault)))
        page.on("dialog", lambda shown: page.heard.append(shown.message))
        page.goto(report)
        pages.append(page)
        return page

    yield open_at
    for page in pages:
        page.close()


@pytest.mark.parametrize("unfolded", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_and_nothing_overlaps(opened, width, unfolded):
    page = opened(width)
    if unfolded:
        page.eval_on_selector_all("details", "all => all.forEach((one) => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT) == []
    assert page.evaluate(OVERLAPS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_asks_nobody_and_complains_of_nothing(opened, report, scheme):
    page = opened(820, scheme)
    page.eval_on_selector_all("details", "all => all.forEach((one) => { one.open = true })")
    page.wait_for_timeout(100)
    assert page.heard == [report]


def test_everything_is_reached_by_keys(opened):
    page = opened(820)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#content"
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        now = page.evaluate(FOCUS)
        if now[0] == "BODY":
            break
        reached.add(now[1])
        if now[0] == "SUMMARY":
            page.keyboard.press("Enter")
    wanted = page.evaluate(
        "[...document.querySelectorAll('main a, main summary, main input, main .scroll')]"
        ".filter((one) => one.getBoundingClientRect().height)"
        ".map((one) => [...document.querySelectorAll('*')].indexOf(one))"
    )
    assert set(wanted) <= reached


def test_landmarks_have_names(opened):
    page = opened(820)
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    for role in ("region", "table"):
        for one in page.get_by_role(role).all():
            named = one.evaluate(
                "one => one.getAttribute('aria-label') || one.caption?.textContent"
                " || document.getElementById(one.getAttribute('aria-labelledby'))?.textContent"
            )
            assert named.strip()


def test_rows_are_found(opened):
    page = opened(820)
    fields = page.locator("details:has(input)")
    assert fields.count()
    fields.first.locator("summary").click()
    rows = fields.first.locator("tbody tr")
    first = rows.first.locator("th").text_content()
    fields.first.locator("input").fill(first)
    page.wait_for_timeout(300)
    shown = [one for one in rows.all() if one.is_visible()]
    assert shown
    assert all(first in one.text_content() for one in shown)
