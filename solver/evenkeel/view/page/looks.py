"""How a page looks and what it does when somebody types: no library, nothing fetched.

Colours are those of the plots, lighter in the dark. Nothing has a width of its own, so that a page
reads on a phone; what must not wrap scrolls by itself.
"""

from evenkeel.view.plots.palette import AFTER, BEFORE

STYLE = f"""
:root {{ color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --dim: #595959; --line: #c4c4c4;
  --was: {BEFORE.colour}; --now: {AFTER.colour}; --cell: 0 114 178 }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper: #16181b; --ink: #e8e8e8; --dim: #ababab;
  --line: #4d4d4d; --now: #56b4e9; --cell: 86 180 233 }} }}
@media print {{ :root {{ color-scheme: light; --paper: #fff; --ink: #000; --dim: #444;
  --line: #999; --now: {AFTER.colour}; --cell: 0 114 178 }} }}
* {{ box-sizing: border-box }}
body {{ margin: 0 auto; padding: 1rem; max-width: 75rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }}
h1 {{ font-size: 1.5rem; line-height: 1.25; margin: .5rem 0 }}
h2 {{ font-size: 1.2rem; margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line) }}
h3 {{ font-size: 1rem; margin: 1.5rem 0 .25rem }}
p {{ margin: .35rem 0; max-width: 60rem }}
a {{ color: inherit }}
.dim, figcaption {{ color: var(--dim); font-size: .9rem }}
.skip {{ position: absolute; left: -100vw }}
.skip:focus {{ left: 1rem; background: var(--paper) }}
nav ul {{ display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0 }}
nav a {{ display: inline-block; padding: .25rem 0 }}
.status {{ border: .15em solid; border-radius: .4em; padding: 0 .4em; white-space: nowrap }}
.cards {{ display: grid; gap: .5rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(9.5rem, 100%), 1fr)) }}
.cards div {{ border: 1px solid var(--line); border-radius: .4rem; padding: .4rem .7rem }}
.cards dt {{ color: var(--dim); font-size: .9rem }}
.cards dd {{ margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums }}
.cards small {{ display: block; color: var(--dim); font-size: .8rem; line-height: 1.3 }}
.scroll {{ overflow-x: auto; max-width: 100%; background:
  linear-gradient(to left, var(--paper) 40%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--dim), transparent) right / .5rem 100% no-repeat }}
.scroll:focus-visible, a:focus-visible, summary:focus-visible, input:focus-visible
  {{ outline: .15rem solid var(--now) }}
table {{ border-collapse: collapse; margin: .5rem 0; font-size: .9rem;
  font-variant-numeric: tabular-nums; overflow-wrap: normal }}
caption {{ text-align: left; color: var(--dim) }}
caption span {{ display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 2rem) }}
th, td {{ text-align: left; padding: .15rem .9rem .15rem 0; vertical-align: top;
  unicode-bidi: isolate }}
td {{ border-top: 1px solid var(--line) }}
tbody th {{ font-weight: 400; border-top: 1px solid var(--line) }}
.f td, .f th + th {{ text-align: right }}
.f td {{ white-space: nowrap }}
.f td.w, .f th.w {{ text-align: left; white-space: normal }}
.f td.w {{ min-width: 7rem }}
.matrix td {{ background: rgb(var(--cell) / var(--a, 0)); padding: .15rem .5rem;
  print-color-adjust: exact; -webkit-print-color-adjust: exact }}
.matrix td, .matrix th {{ padding: .15rem .5rem }}
figure {{ margin: .5rem 0 1rem; break-inside: avoid }}
figcaption {{ margin-top: .5rem }}
.plot {{ display: grid; grid-template-columns: 3.2rem minmax(0, 1fr) }}
.plot b {{ grid-column: 2; font-size: .85rem; padding-top: .5rem }}
.axis {{ position: relative; font-size: .75rem; color: var(--dim) }}
.axis span {{ position: absolute; right: .4rem; transform: translateY(50%); line-height: 1 }}
.plot svg {{ display: block; width: 100%; height: 6.5rem; border-bottom: 1px solid var(--dim) }}
.domains {{ grid-column: 2; display: flex; font-size: .75rem; color: var(--dim) }}
.domains span {{ flex-basis: 0; min-width: 0; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; border-left: 1px solid var(--line); padding-left: .15rem }}
.across {{ grid-column: 2; display: flex; font-size: .75rem; color: var(--dim) }}
.across span {{ flex: 1 1 0; min-width: 0; text-align: center }}
.across span:first-child {{ text-align: left }}
.across span:last-child {{ text-align: right }}
.lanes {{ display: grid; column-gap: .4rem; row-gap: .1rem;
  grid-template-columns: minmax(3rem, min(10rem, 28%)) minmax(0, 1fr) }}
.lanes i {{ font-style: normal; font-size: .75rem; line-height: 1.2rem; text-align: right;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate }}
.lanes svg {{ display: block; width: 100%; height: 1.2rem; border-bottom: 1px solid var(--line) }}
.mark {{ fill: none; stroke-linecap: round; vector-effect: non-scaling-stroke }}
.mark.now {{ stroke: var(--now); stroke-width: 9 }}
.mark.was {{ stroke: var(--was); stroke-width: 9 }}
.trail {{ fill: none; stroke: var(--now); stroke-width: 1.5; vector-effect: non-scaling-stroke }}
.was {{ fill: var(--was) }}
.now {{ fill: var(--now) }}
.part {{ fill-opacity: .4 }}
.dead {{ fill: none; stroke: var(--dim); vector-effect: non-scaling-stroke }}
.rule {{ fill: none; stroke: var(--ink); vector-effect: non-scaling-stroke }}
.mean {{ stroke-dasharray: 6 4 }}
.least {{ stroke-dasharray: 1.5 3; stroke-width: 1.5 }}
.pair {{ display: block; width: 100%; min-width: 5rem; height: .9rem; margin-top: .3rem }}
details {{ margin: .75rem 0 }}
summary {{ cursor: pointer; padding: .25rem 0; font-weight: 600 }}
input {{ font: inherit; max-width: 100%; padding: .2rem .4rem }}
footer {{ margin-top: 3rem; color: var(--dim); font-size: .85rem }}
@media print {{ body {{ max-width: none; padding: 0; font-size: 10pt }} nav, .search, .skip
  {{ display: none }} .scroll {{ overflow: visible }} .f td
  {{ white-space: normal }} tr {{ break-inside: avoid }}
  h2, h3 {{ break-after: avoid }} svg {{ print-color-adjust: exact;
  -webkit-print-color-adjust: exact }} }}
"""

SCRIPT = """
for (const box of document.querySelectorAll(".rows")) {
  const search = box.querySelector(".search"), said = box.querySelector("output");
  const rows = [...box.querySelectorAll("tbody tr")];
  const plain = words => words.toLowerCase().replace(/\\s+/g, "");
  const words = rows.map(row => plain(row.textContent));
  search.hidden = false;
  search.querySelector("input").addEventListener("input", event => {
    const wanted = plain(event.target.value);
    let found = 0;
    rows.forEach((row, i) => { row.hidden = !words[i].includes(wanted); found += !row.hidden; });
    said.textContent = `${found} of ${rows.length} rows`;
  });
}
"""
"""Shows the rows that have what is typed, blanks and breaks of lines apart.

Without it everything is there but the search."""
