"""What operators of Ceph reported, and what is right for each.

The commands that we write are carried out on the map and judged by ``tests.support.crush_judge``,
which reads the rules from the files and shares nothing with what made the commands.
"""

import json

import numpy as np
import pytest

import evenkeel as ek
from tests.support.clusters import assert_same
from tests.support.crush_judge import NONE, judge_files

FILES = ("osd_dump.json", "crush.json", "pg_dump.json")
BY_EITHER = pytest.mark.parametrize(
    "how", [("--level", "0.05"), ("--method", "ceph_upmap")], ids=["balance", "ceph_upmap"]
)


def solved(case, *words, ignored=(), code=0, files=FILES):
    """Solve a case and judge its commands; every one of them has to be heeded."""
    answer = case.run("solve", *files, *words, "-o", "plan.sh")
    assert answer.code in (code, 0), answer.text
    judged = judge_files(case.source, case.written("plan.sh"), *ignored)
    assert judged.broken == []
    assert judged.dropped == []
    return answer, judged


@pytest.mark.parametrize(
    "name",
    [
        "ceph/four-hosts-three-each",
        "ceph/one-ssd-two-hdd",
        "ceph/devices-without-class",
        "ceph/type-below-hosts",
        "ceph/pool-being-split",
        "ceph/three-takes",
        "ceph/two-classes-in-a-host",
    ],
)
@BY_EITHER
def test_rules_of_every_kind_are_kept(public, name, how):
    answer, judged = solved(public(name), *how)
    assert judged.changed
    assert "rules none broken" in answer.text


def test_devices_hold_as_many_groups_as_the_cluster_listed(public):
    case = public("ceph/six-devices-of-two-sizes")
    cluster = ek.read(case.path("page.md"), case.path("crushmap.txt"))
    held = np.bincount(cluster.placement.node)
    assert held.tolist() == [51, 77, 47, 81, 49, 79]


@BY_EITHER
def test_what_is_down_and_in_keeps_its_replicas(public, how):
    case = public("ceph/rack-down-and-in")
    files = ("dump.txt", "crushmap.txt")
    cluster = ek.read([case.path(name) for name in files])
    held, names = cluster.placement, cluster.partitions.names
    up = np.bincount(held.owner, cluster.nodes.alive[held.node])
    peered = {names[p] for p in np.flatnonzero(up == 1)}
    assert peered == {"1.0", "2.1", "2.2", "2.6", "2.b", "2.e", "2.f"}
    answer = case.run("solve", *files, *how, "-o", "plan.sh")
    assert answer.code == 3
    moved = [line.split()[4:] for line in case.written("plan.sh").splitlines()]
    down = {str(n) for n in np.flatnonzero(~cluster.nodes.alive)}
    assert moved
    assert down.isdisjoint(n for pairs in moved for n in pairs)


@BY_EITHER
@pytest.mark.parametrize("name", ["ceph/erasure-host-out", "ceph/erasure-holes-by-crush"])
def test_holes_are_left_as_they_are(public, name, how):
    answer, judged = solved(public(name), *how)
    assert judged.changed
    before = judge_files(public(name).source, "")
    for group, row in judged.rows.items():
        assert [osd == NONE for osd in row] == [osd == NONE for osd in before.rows[group]]
    assert "note" in answer.err and "pool 4 (CRUSH rule ec_hdd)" in answer.text


@pytest.mark.parametrize(
    "name", ["ceph/erasure-host-out", "ceph/erasure-holes-by-crush", "ceph/third-host-is-gone"]
)
def test_a_check_counts_what_is_on_no_device(public, name):
    case = public(name)
    files = [one.name for one in sorted(case.source.iterdir()) if one.suffix != ".md"]
    answer = case.run("check", *files, "--json")
    holes = sum(NONE in row for row in judge_files(case.source, "").rows.values())
    assert answer.code == 1 and answer.json["unfilled"] >= max(holes, 1)
    text = " ".join(case.run("solve", *files).out.split())
    assert f"! {answer.json['unfilled']} replicas are on no node, and no order places any" in text


def test_a_drained_device_that_is_down_and_in_is_no_proof(public):
    case = public("ceph/third-host-is-gone")
    dump = json.loads(case.path("osd_dump.json").read_text())
    for one in dump["osds"]:
        one |= {"in": 1, "weight": 1.0, "up": int(one["osd"] != 2)}
        one["state"] = ["exists", "up"] if one["up"] else ["exists"]
    (case.folder / "given.json").write_text(json.dumps(dump))
    files = (str(case.folder / "given.json"), "crush.json")
    answer = case.run("solve", *files, "--drain", "osd.2")
    assert answer.code == 3 and "Proven" not in answer.text
    assert "pinned replicas stay on a node that is down: osd.2" in answer.text


DUMPED = "PG_STAT OBJECTS BYTES OMAP_BYTES* LOG STATE STATE_STAMP UP UP_PRIMARY ACTING\n"
LISTED = "PG   OBJECTS  DEGRADED  BYTES  OMAP_BYTES*  LOG  STATE  SINCE  UP  ACTING\n"


@pytest.mark.parametrize("listed", [False, True], ids=["dump", "ls"])
@pytest.mark.parametrize("name", ["ceph/erasure-host-out", "ceph/erasure-holes-by-crush"])
def test_holes_are_read_in_tables_of_groups(public, name, listed):
    """As in pastebin tBLaq63Q (pg dump) and pHh33Dq7 (pg ls) of pastewart."""
    case = public(name)
    paths = [case.path(one) for one in FILES]
    given = json.loads(paths[2].read_text())
    given = given.get("pg_map", given) if isinstance(given, dict) else {"pg_stats": given}
    lines = []
    for one in given["pg_stats"]:
        ids = ["NONE" if osd == NONE else str(osd) for osd in one["up"]]
        up, size = f"[{','.join(ids)}]", one.get("stat_sum", {}).get("num_bytes", 0)
        first = next(osd for osd in ids if osd != "NONE")
        begin = f"{one['pgid']} 9 {'0 ' * listed}{size} 0 9 {one['state']} "
        lines.append(
            begin + (f"6d {up}p{first} {up}p{first}\n" if listed else f"now {up} {first} {up}\n")
        )
    (case.folder / "groups.txt").write_text((LISTED if listed else DUMPED) + "".join(lines))
    read = [ek.read(*paths[:2], one) for one in (paths[2], case.folder / "groups.txt")]
    assert_same(*read)
    assert NONE in {osd for one in given["pg_stats"] for osd in one["up"]}


@BY_EITHER
def test_infinite_figures_are_read_and_noted(public, how):
    answer, judged = solved(public("ceph/inf-in-osd-dump"), *how)
    assert judged.changed
    assert "osd_dump.json: 2 figures" in answer.text


@BY_EITHER
@pytest.mark.parametrize("word", ["group=1", "group=big", "pool=big"])
def test_a_pinned_pool_stays(public, how, word):
    _, judged = solved(public("ceph/only-one-pool"), *how, "--pin", word, code=3)
    assert not [name for name in judged.changed if name.startswith("1.")]
    assert "ceph_upmap" not in how or judged.changed


@BY_EITHER
def test_an_excluded_device_takes_nothing(public, how):
    case = public("ceph/only-one-pool")
    before = judge_files(case.source, "")
    _, judged = solved(case, *how, "--exclude", "osd.5", code=3)
    assert judged.changed
    assert all(5 in before.rows[name] for name, row in judged.rows.items() if 5 in row)


@pytest.mark.parametrize(
    "name",
    ["ceph/two-data-centres-by-takes", "ceph/three-data-centres-two-each", "ceph/ssd-primary"],
)
@BY_EITHER
def test_takes_and_steps_are_kept(public, name, how):
    _, judged = solved(public(name), *how, files=FILES[:2], code=3)
    assert judged.changed


def test_pairs_in_force_against_the_rule_are_broken_rules(public):
    case, files = public("ceph/pairs-that-break-a-rule-in-force"), ("osd_dump.txt", "crush.txt")
    found = case.run("check", *files, "pgs_brief.txt")
    assert found.code == 1 and "spread 7 replicas too many in one domain" in found.text
    answer = case.run("solve", *files, "pgs_brief.txt", "-o", "plan.sh")
    assert answer.code == 0 and "spread 7 - replicas" in answer.text
    assert "11.1f" in case.written("plan.sh") and "different times" not in answer.text


@pytest.mark.parametrize("name", ["ceph/hybrid-per-zone", "ceph/nested-choose"])
@BY_EITHER
def test_what_the_monitors_would_drop_is_not_written(public, name, how):
    answer, judged = solved(public(name), *how, files=FILES[:2], code=3)
    assert {name[:2] for name in judged.changed} == {"2."}
    assert "pool 1 (CRUSH rule" in answer.err and "left alone" in answer.err


def test_a_budget_of_bytes_is_spent_on_the_fullest_devices(public):
    case = public("ceph/budget-of-bytes")
    fullest = []
    for given in ("0.25TB", "0.5TB", "1TB", "2TB", "4TB"):
        answer = case.run("solve", *FILES, "--level", "0.1", "--bytes", given, "--json")
        document = answer.json
        assert document["status"] == "missed"
        assert document["stop_reason"] == "limits"
        assert "limits.bytes" in document["message"]
        assert "no move" not in document["message"]
        fullest.append(fullest_of(case, given))
    came = fullest_of(case, "0")
    assert fullest == sorted(fullest, reverse=True)
    assert fullest[3] <= 0.291 / 0.397 * came  # what the greedy comes to


def fullest_of(case, given):
    """Return how full the fullest device is after a solve with so many bytes."""
    cluster = ek.read([str(case.source / name) for name in FILES])
    limits = ek.Limits(bytes=given if given != "0" else 0)
    result = ek.solve(cluster, goals=ek.Goals(level=0.1), limits=limits)
    return float((result.levelness.loads / cluster.nodes.capacity).max())


@pytest.mark.parametrize("most", [1, 2, 3])
def test_so_many_moves_for_each_device_relieve_the_fullest_of_its_largest_groups(public, most):
    cluster = ek.read([str(public("ceph/budget-of-bytes").source / name) for name in FILES])
    limits = ek.Limits(node_in=most, node_out=most)
    result = ek.solve(cluster, goals=ek.Goals(level=0.1), limits=limits)
    assert result.comparison.node_in.max() <= most
    assert result.comparison.node_out.max() <= most
    room, held = cluster.nodes.capacity[:, 0], cluster.placement
    sizes = cluster.partitions.load.voter[held.owner, 0]
    on = [np.sort(sizes[held.node == n])[::-1] for n in range(len(room))]
    least = max(group[most:].sum() / room[n] for n, group in enumerate(on))
    fullest = float((result.levelness.loads[:, 0] / room).max())
    assert fullest <= max(1.15 * least, result.bounds.target[0, 0] / room[0])


def test_ten_moves_at_a_time_relieve_the_fullest_device_in_each_run(public):
    cluster = ek.read([str(public("ceph/budget-of-bytes").source / name) for name in FILES])
    fullest, moves = [np.inf], 0
    while True:
        result = ek.solve(cluster, goals=ek.Goals(level=0.1), limits=ek.Limits(moves=10))
        moves += result.comparison.moves
        fullest.append(float((result.levelness.loads / cluster.nodes.capacity).max()))
        assert fullest[-1] < fullest[-2]
        if result.success:
            break
        cluster = cluster.with_placement(result.placement)
    assert moves <= 27


@BY_EITHER
def test_a_pool_that_is_being_merged_stays(public, how):
    answer, judged = solved(public("ceph/pool-being-merged"), *how, files=FILES[:2], code=3)
    assert {name[:2] for name in judged.changed} == {"1."}
    assert "pg_num above pg_num_target" in answer.err


@BY_EITHER
def test_clients_that_know_no_upmaps_are_noted(public, how):
    answer, _ = solved(public("ceph/clients-of-jewel"), *how, code=3)
    assert "set-require-min-compat-client luminous" in answer.text


@BY_EITHER
def test_a_listing_without_sizes_levels_counts(public, how):
    files = ("osd_dump.json", "crush.json", "pgs_brief.json", "osd_df_tree.json")
    answer, judged = solved(public("ceph/brief-listing"), *how, files=files, code=3)
    assert judged.changed and "no sizes" in answer.err


@BY_EITHER
def test_nothing_goes_to_devices_that_are_too_full_for_backfill(public, how):
    case = public("ceph/backfillfull-devices")
    before = judge_files(case.source, "")
    answer, judged = solved(case, *how, files=(*FILES, "osd_df.json"), code=3)
    assert judged.changed and "(backfillfull)" in answer.err
    for name in judged.changed:
        assert not ({*judged.rows[name]} - {*before.rows[name]}) & {3, 5}


@BY_EITHER
def test_upmaps_to_a_device_of_weight_zero_are_dropped(public, how):
    case = public("ceph/upmap-to-a-weight-of-zero")
    answer, judged = solved(case, *how, files=FILES[:2], code=3)
    assert "count as dropped: 2.1, 2.2" in answer.err
    assert judged.changed and not any(7 in judged.rows[name] for name in judged.changed)


@BY_EITHER
def test_the_rule_of_stretch_mode_is_kept(public, how):
    _, judged = solved(public("ceph/stretch-mode"), *how, files=FILES[:2], code=3)
    assert "2." in {name[:2] for name in judged.changed}
    assert all(sum(osd < 6 for osd in judged.rows[name]) == 2 for name in judged.changed)


def test_a_pool_of_few_large_groups_is_levelled_by_bytes(public):
    files = (*FILES, "osd_df.json")
    _, judged = solved(public("ceph/pool-of-few-large-groups"), "--level", "0.1", files=files)
    assert {name[:2] for name in judged.changed} == {"4."}


def test_text_is_read_as_json_is(public):
    folder = public("ceph/plain-text").source
    cluster = ek.read(
        [str(folder / name) for name in ("osd_dump.txt", "pg_dump.txt", "crush.json")]
    )
    assert cluster.partitions.group_names == (".mgr", "data") or len(cluster.partitions) == 65
    assert cluster.partitions.load.voter[:, 0].sum() == 1e6 * 65 * 66 / 2
    assert cluster.native.items == {2: {3: [(5, 1)]}}
    result = ek.solve(cluster, goals=ek.Goals(level=0.05))
    assert result.moves and not result.audit.hard


@pytest.mark.parametrize(
    ("files", "words"),
    [([], "bytes are numbers of replicas, and"), (["pg_dump.txt"], "no sizes of devices:")],
)
def test_percentages_that_are_none_of_disks_are_noted(public, files, words):
    answer = public("ceph/plain-text").run("check", "osd_dump.txt", "crush.json", *files)
    assert f"{words} percentages are of 10 times what each device deserves" in answer.text


@pytest.mark.parametrize("indent", ["", "    "])
def test_text_behind_a_prompt_is_read_as_text_is(public, tmp_path, indent):
    folder = public("ceph/plain-text").source
    plain = [folder / name for name in ("osd_dump.txt", "pg_dump.txt")]
    for file, command in zip(plain, ("osd dump", "pg dump"), strict=True):
        lines = ["[root@rook-ceph-tools-7bb5797c8-584k5 /]# ceph " + command]
        lines += file.read_text().splitlines()
        (tmp_path / file.name).write_text("".join(f"{indent}{line}\n" for line in lines))
    rest = str(folder / "crush.json")
    pasted = ek.read(*[str(tmp_path / file.name) for file in plain], rest)
    assert_same(pasted, ek.read(*map(str, plain), rest))


def test_a_plan_looks_at_maps_as_text(public):
    case = public("ceph/plain-text")
    folder = str(case.folder / "move")
    maps = ("osd_dump.txt", "pg_dump.txt")
    assert case.run("plan", *maps, "crush.json", "--level", "5%", "-o", "move").code == 0
    ran = case.run("run", folder, "--dry-run", *(word for one in maps for word in ("--dump", one)))
    assert ran.code == 0 and "ready: wave 1 of " in ran.text


@BY_EITHER
def test_groups_of_a_device_that_drains_are_left_alone(public, how):
    case = public("ceph/device-drains")
    before = judge_files(case.source, "")
    answer, judged = solved(case, *how, code=3)
    assert "21 groups being copied" in answer.err and judged.changed
    assert not any(3 in {*judged.rows[name]} - {*before.rows[name]} for name in judged.changed)


@BY_EITHER
def test_new_hosts_are_filled_where_upmaps_keep_all_away(public, how):
    _, judged = solved(public("ceph/new-hosts-behind-upmaps"), *how, code=3)
    held = [sum(osd in row for row in judged.rows.values()) for osd in range(12)]
    assert max(held) <= 34 and min(held) >= 30


@BY_EITHER
def test_groups_follow_weights_and_not_sizes(public, how):
    _, judged = solved(public("ceph/device-resized-weight-left"), *how)
    held = np.bincount([osd for row in judged.rows.values() for osd in row])
    assert held[3] <= 29 and held[:3].min() >= 50


@BY_EITHER
@pytest.mark.parametrize("name", ["ceph/third-host-is-gone", "ceph/all-devices-in-one-host"])
def test_hosts_that_crush_lacks_are_named(public, name, how):
    answer, judged = solved(public(name), *how)
    assert "CRUSH finds devices for fewer than 3 replicas" in answer.err
    before = judge_files(public(name).source, "")
    for group, row in judged.rows.items():
        assert len(row) == len(before.rows[group])
    assert not judged.changed or name == "ceph/all-devices-in-one-host"


@BY_EITHER
@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("ceph/upmaps-collide-after-a-loss", "3.2, 3.4, 3.7"),
        ("ceph/upmaps-of-a-purged-device", "18.5, 99.1"),
    ],
)
def test_pairs_that_have_no_effect_are_named(public, name, named, how):
    answer, judged = solved(public(name), *how, files=FILES[:2])
    assert named in answer.err
    assert judged.changed


@pytest.mark.parametrize("head", [b"", b"report 3915466442\n"], ids=["alone", "as printed"])
def test_a_report_has_all_maps_within(public, tmp_path, head):
    printed = public("ceph/report-alone").path("report.txt").read_bytes()
    (tmp_path / "report.txt").write_bytes(head + printed.partition(b"\n")[2])
    read = ek.read(tmp_path / "report.txt")
    assert (len(read.nodes), len(read.partitions)) == (12, 56)
    assert read.native_format == "ceph"
    assert read.partitions.load.voter.max() > 1.0  # sizes, too


def test_insights_alone(public):
    case = public("ceph/insights-alone")
    answer = case.run("solve", "insights.json", "--json")
    assert (answer.code, answer.json["moves"]) == (0, 0)
    read = ek.read(case.path("insights.json"))
    assert (len(read.nodes), len(read.placement.node)) == (3, 48)


def test_answers_that_a_balancer_keeps_in_one_file(public, tmp_path):
    """``gather`` of TheJJ's balancer saves its state so."""
    case = public("ceph/backfillfull-devices")
    keys = {"osd_dump": "osd_dump", "pg_dump": "pg_dump", "osd_df_dump": "osd_df"}
    files = {**keys, "osd_df_tree_dump": "osd_df", "crush_dump": "crush"}
    held = {key: json.loads(case.path(f"{file}.json").read_text()) for key, file in files.items()}
    state = {"stateversion": 1, **held, "pool_dump": held["osd_dump"]["pools"]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    apart = ek.read([case.path(f"{file}.json") for file in dict.fromkeys(files.values())])
    assert_same(ek.read(tmp_path / "state.json"), apart)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("plain-text", "osd_dump.txt crush.json pg_dump.txt"),
        ("racks-without-weight", "osd_dump.txt crush.txt"),
        ("full-under-two-roots", "osd_dump.txt crush.txt osd_df.txt osd_tree.txt"),
    ],
)
def test_a_session_of_several_answers(public, tmp_path, name, files):
    paths = [public(f"ceph/{name}").path(one) for one in files.split()]
    asked = [f"[root@mon-01 ~]# ceph {path.stem}\n{path.read_text()}\n" for path in paths]
    (tmp_path / "session.txt").write_text("".join(asked))
    (tmp_path / "again.txt").write_text("".join([asked[0], *asked]))
    apart = ek.read(paths)
    assert_same(ek.read(tmp_path / "session.txt"), apart)
    again = ek.read(tmp_path / "again.txt")
    assert again.placement.node.tolist() == apart.placement.node.tolist()
    assert again.native.notes[0].startswith("more than one state of ")


def test_lines_of_a_terminal_around_json_mean_nothing(public):
    case = public("ceph/console-around-json")
    files = ("osd_dump.json", "crush_dump.json", "pg_dump.json", "osd_df.json")
    read = ek.read([case.path(name) for name in files])
    assert (len(read.nodes), len(read.partitions)) == (12, 56)
    assert case.run("solve", *files, "-o", "plan.sh").code == 0


@pytest.mark.parametrize(
    ("name", "size"), [("osd_df_tree.txt", 2**40), ("osd_df_jewel.txt", 1112 * 2**30)]
)
def test_sizes_of_devices_are_read_as_text(public, name, size):
    case = public("ceph/devices-as-text")
    groups = [
        {"pgid": f"1.{pg:x}", "up": row, "acting": row, "stat_sum": {"num_bytes": 10 << 30}}
        for pg, row in enumerate(judge_rows(case))
    ]
    (case.folder / "pg.json").write_text(json.dumps({"pg_stats": groups}))
    files = [case.path(one) for one in ("osd_dump.txt", "crush.txt", "osd_tree.txt", name)]
    read = ek.read(*files, case.folder / "pg.json")
    sizes = read.nodes.capacity[:, 0]
    twice = 7 if name == "osd_df_tree.txt" else -1
    assert [*sizes] == [size * (2 if n == twice else 1) for n in range(12)]


def test_groups_weigh_what_their_omap_takes(public):
    case = public("ceph/groups-of-omap-alone")
    maps = [case.path("osd_dump.txt"), case.path("crush.txt")]
    read = ek.read(*maps, case.path("pg_dump.txt"))
    load = dict(zip(read.partitions.names, read.partitions.load.voter[:, 0], strict=True))
    assert (load["1.9"], load["1.8"]) == (201326592, 264241152)
    counted = {"num_bytes": 1, "num_omap_bytes": 2}
    groups = [
        {"pgid": f"1.{pg:x}", "up": row, "stat_sum": counted}
        for pg, row in enumerate(read.placement.node.reshape(-1, 2).tolist())
    ]
    (case.folder / "pg.json").write_text(json.dumps({"pg_stats": groups}))
    assert (ek.read(*maps, case.folder / "pg.json").partitions.load.voter == 3).all()
    answer = case.run("solve", "osd_dump.txt", "crush.txt", "pg_dump.txt", "--level", "20%")
    assert answer.code == 0 and "data moved 490.7 MB" in answer.text


def judge_rows(case):
    """Return the devices of the groups of a case that is read from text."""
    read = ek.read(case.path("osd_dump.txt"), case.path("crush.txt"))
    return read.placement.node.reshape(-1, 3).tolist()


def test_a_device_with_a_primary_affinity_of_zero_gets_no_primaries(public):
    case = public("ceph/primary-affinity-of-zero")
    answer = case.run("solve", "osd_dump.txt", "crush.txt", "--leaders", "10%", "-o", "plan.sh")
    assert answer.code == 0
    named = [
        line.split()[-1]
        for line in case.written("plan.primaries.sh").splitlines()
        if "-primary" in line
    ]
    assert named
    assert "2" not in named


def test_groups_of_a_map_with_the_tunables_of_old_releases_are_where_they_were(public):
    case = public("ceph/full-under-two-roots")
    files = ("osd_dump.txt", "crush.txt", "osd_df.txt", "osd_tree.txt")
    posted = {
        "1.3": [4, 1, 6], "1.7": [1, 6, 5], "1.c": [1, 8, 4], "1.d": [4, 6, 1], "1.13": [1, 6, 3],
        "20.ca": [7, 5, 1], "20.cb": [3, 1, 7], "20.d2": [5, 6, 1], "20.d3": [4, 1, 7],
        "20.d5": [8, 1, 3], "20.d6": [1, 5, 8], "20.d9": [6, 4, 1], "20.db": [4, 7, 1],
        "20.dd": [1, 6, 5], "20.e3": [7, 5, 1], "20.e7": [1, 7, 4],
    }  # fmt: skip
    read = ek.read([case.path(name) for name in files])
    at = {name: p for p, name in enumerate(read.partitions.names)}
    assert {name: read.placement.nodes[at[name]].tolist() for name in posted} == posted
    answer = case.run("solve", *files, "-o", "plan.sh")
    assert answer.code == 0 and "a release before Luminous (crush_ruleset)" in answer.text


def test_commands_with_what_is_printed_around_them(public):
    case = public("ceph/upmaps-as-printed")
    files = [case.path(name) for name in ("osd_dump.txt", "crush.txt", "printed.txt")]
    before, after = ek.read(*files[:2]), ek.read(*files)
    assert (before.placement.node != after.placement.node).sum() == 2


def test_flags_that_halt_what_is_moved_are_noted(public):
    case = public("ceph/backfill-is-halted")
    note = "with the flags {} nothing is copied: "
    answer = case.run("solve", "osd_dump.txt", "crush.txt")
    assert answer.code == 0 and note.format("nobackfill, norecover") in answer.text
    other = public("ceph/all-devices-in-one-host")
    files = [other.path(name) for name in ("osd_dump.json", "crush.json")]
    given = json.loads(files[0].read_text()) | {"flags": "noout,norebalance,sortbitwise"}
    (other.folder / "halted.json").write_text(json.dumps(given))
    said = [ek.read(one, files[1]).native.notes for one in (files[0], other.folder / "halted.json")]
    noted = [any(note.format("norebalance") in one for one in notes) for notes in said]
    assert noted == [False, True]


@pytest.mark.parametrize(
    ("name", "word"),
    [("osd_dump.xml", "-f json"), ("crush.bin", "crushtool -d"), ("osdmap.bin", "--print")],
)
def test_forms_that_are_not_read_are_refused_with_the_command(public, name, word):
    answer = public("ceph/xml-and-binary-maps").run("check", name)
    assert answer.code == 2
    assert word in answer.text


@BY_EITHER
def test_upmaps_without_effect_are_noted_and_move_nothing(public, how):
    case = public("ceph/only-one-pool")
    dump = json.loads(case.path("osd_dump.json").read_text())
    cluster = ek.read([str(case.source / name) for name in FILES])
    devices = [int(name.removeprefix("osd.")) for name in cluster.nodes.names]
    here = [devices[n] for n in cluster.placement.nodes[0].tolist()]
    first, *others = [osd for osd in devices if osd not in here]
    for pair in ((first, others[0]), (here[0], here[1])):
        mappings = [{"from": pair[0], "to": pair[1]}]
        dump["pg_upmap_items"] = [{"pgid": cluster.partitions.names[0], "mappings": mappings}]
        (case.folder / "given.json").write_text(json.dumps(dump))
        files = ("given.json", *FILES[1:])
        words = [str(case.path(name)) for name in files]
        answer = case.run("solve", *words, *how, "-o", "idle.sh")
        assert "upmaps without effect, as CRUSH puts the group elsewhere" in answer.text
        assert case.run("solve", *FILES, *how, "-o", "plan.sh").code == answer.code
        assert case.written("idle.sh") == case.written("plan.sh")


def test_groups_that_lack_a_replica_by_a_weight_of_zero_are_named(public):
    case = public("ceph/racks-without-weight")
    answer = case.run("solve", "osd_dump.txt", "crush.txt", "-o", "plan.sh")
    assert answer.code == 0
    named = "pool 16 (CRUSH rule indc1): CRUSH finds devices for fewer than 3 replicas of 32 of 32"
    assert named in answer.text and "require_min_compat_client jewel" in answer.text
    hosts = [{"3", "6"}, {"4", "7"}, {"5", "8"}, {"0"}, {"1"}, {"2"}]
    lines = [line for line in case.written("plan.sh").splitlines() if "pg-upmap-items" in line]
    assert lines
    for line in lines:
        pairs = line.split("pg-upmap-items ")[1].split()[1:]
        assert all({*pairs[i : i + 2]} in hosts for i in range(0, len(pairs), 2))
    later = case.run("check", "osd_dump.txt", "crush.txt", "pg_dump.txt")
    assert later.code == 2 and "the files are of different times" in later.text


class TestDots:
    """A dump of which a page shows a part."""

    def test_the_whole_of_it_is_levelled_as_far_as_a_large_host_permits(self, public):
        case = public("ceph/dump-cut-by-dots")
        answer = case.run("solve", "dump.txt", "crush.txt", "-o", "plan.sh")
        assert answer.code == 0 and "set-require-min-compat-client luminous" in answer.text
        solved = ek.solve(ek.read(case.path("dump.txt"), case.path("crush.txt")), "ceph_upmap")
        held = np.bincount(solved.placement.node, minlength=7)
        assert held[[0, 1, 3, 6]].max() <= 33 and held[5] == 0

    def test_dots_in_place_of_devices_are_refused(self, public):
        case = public("ceph/dump-cut-by-dots")
        lines = case.path("dump.txt").read_text().splitlines()
        shown = [
            line for line in lines if not line.startswith(("osd.3", "osd.4", "osd.5", "osd.6"))
        ]
        (case.folder / "cut.txt").write_text("\n".join([*shown, "...", ""]))
        answer = case.run("check", str(case.folder / "cut.txt"), "crush.txt")
        assert (answer.code, "cut.txt:22: stands for lines that were left out" in answer.text) == (
            2, True,
        )  # fmt: skip


def test_a_rule_for_other_numbers_of_replicas_places_nothing(public):
    case = public("ceph/pool-beyond-its-rule")
    answer = case.run("solve", "osd_dump.txt", "crush.txt", "--json")
    assert (answer.code, answer.json["moves"]) == (0, 0)
    assert "pool 6 (CRUSH rule 1) is left alone: bucket ssd chooses by straw" in answer.text
    assert "ceph osd crush set-all-straw-buckets-to-straw2, since Mimic" in answer.text
    assert "of pools left alone, what it holds" in answer.text
    assert "pool 7 (CRUSH rule 2) is left alone: it is for 2 to 2 replicas, not 3" in answer.text
    swept = case.run("sweep", "osd_dump.txt", "crush.txt")
    assert "note: nothing is judged: all 512 partitions are left alone" in swept.text
    straw2 = case.path("crush.txt").read_bytes().replace(b"alg straw\n", b"alg straw2\n")
    cluster = ek.read(case.path("osd_dump.txt"), straw2)
    assert (cluster.placement.node[cluster.placement.owner < 256] >= 0).all()
    assert (cluster.placement.node[cluster.placement.owner >= 256] < 0).all()
