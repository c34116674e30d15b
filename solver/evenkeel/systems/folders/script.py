"""``run.sh``: the loop that carries out a plan, around the commands of a system."""

import shlex
from collections.abc import Mapping, Sequence

from evenkeel.systems.folders.carrier import Carrier, Setting

SHARED = (
    Setting("EVENKEEL", "evenkeel", "the command that reads dumps and compares"),
    Setting("PAUSE", "10", "seconds between two looks at the system"),
    Setting("PATIENCE", "86400", "seconds after which a wave that has not ended is given up"),
    Setting("REPORT", "600", "seconds of a wait after which it says what it waits for, and looks"),
    Setting("TRIES", "12", "looks after which a wave that has not begun is given up"),
)

DEFAULTS = r"""
hold() { :; }
release() { :; }
still='something is still held'

# nap WHAT: waits before the next look; 1 once PATIENCE is used up, counted from where spent=0 was
# set, or where the system is not where the plan expects it any more
nap() {
  [ "$spent" -gt 0 ] || silent=0
  [ "$spent" -le "$PATIENCE" ] || {
    printf 'run.sh: given up after %s s: %s\n' "$PATIENCE" "$1" >&2
    return 1
  }
  [ "$silent" -lt "$REPORT" ] || {
    silent=0
    tell "waiting: $1"
    differs && return 1
  }
  spent=$((spent + PAUSE + 1)) silent=$((silent + PAUSE + 1))
  sleep "$PAUSE"
}
"""
"""What systems may use, and have where nothing has to be held."""

LOOP = r"""
stop() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }
tell() { printf '%s  %s\n' "$(date '+%F %T')" "$*"; }

# Says on the standard output where the system is; 1: no dump, 2: not readable, 3: it differs.
look() {
  rm -rf "$dump" && mkdir "$dump" || return 1
  take || return 1
  # an evenkeel.toml of whoever runs this must not change what is read here
  "$EVENKEEL" guard "$here" "$dump" --record --config /dev/null
}

# Whether it differs, as a wait goes on; what that is stands on the standard error.
differs() {
  look >/dev/null
  [ $? -eq 3 ]
}

# The same as look; dumps that are taken while something changes may contradict each other for
# a while.
looked() {
  failed=0
  while :; do
    said=$(look) && return 0
    code=$?
    failed=$((failed + 1))
    [ "$code" -lt 3 ] && [ "$failed" -lt "$TRIES" ] || return "$code"
    sleep "$PAUSE"
  done
}

unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd) || exit 1
whole=$(cd -- "$here/$whole" && pwd) || exit 1
dump=$here/dump held=$whole/held
mkdir "$whole/running" 2>/dev/null ||
  stop "it runs already; if it was killed, remove $whole/running first"
end_run() {
  rm -rf "$whole/running"
  [ ! -e "$held" ] ||
    printf 'run.sh: %s; %s, and "sh run.sh release" in %s does so at once\n' \
      "$still" 'a run that goes on from here sees to it' "$here" >&2
}
trap end_run EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

give_back() {
  [ -e "$held" ] || return 0
  release || stop 'what was held could not be given back: try sh run.sh release'
  rm -rf "$held"
}
case ${1-} in
'') ;;
release) give_back; exit 0 ;;
*) stop "takes no word but release" ;;
esac

[ "$waves" -gt 0 ] || [ -z "$left" ] || {
  give_back
  stop "there is nothing to run: $left"
}

ordered='' idle=0 waited=0 silent=0
while :; do
  looked || {
    code=$?
    printf 'run.sh: stopped; README.md says how to go on from here, or back\n' >&2
    exit "$code"
  }
  wave=${said%% *} rest=${said#* }
  word=${rest%%:*}
  [ "$word" != finished ] || break
  if [ "$wave" != "$ordered" ]; then
    tell "$rest"
    # what an earlier run has begun ends before it is ordered again
    [ "$word" = ready ] || settle "$here/waves/$wave" || stop "wave $wave: does not end well"
    hold || stop "what has to be held meanwhile could not be"
    apply "$here/waves/$wave" || stop "wave $wave: a command failed"
    settle "$here/waves/$wave" || stop "wave $wave: does not end well"
    ordered=$wave idle=0 waited=0 silent=0
    continue
  fi
  if [ "$word" = begun ]; then idle=0; else idle=$((idle + 1)); fi
  [ "$idle" -lt "$TRIES" ] || stop "what was ordered does not begin: $rest"
  waited=$((waited + PAUSE + 1)) silent=$((silent + PAUSE + 1))
  [ "$waited" -le "$PATIENCE" ] ||
    stop "given up after $PATIENCE s, what was ordered does not end: $rest"
  [ "$silent" -lt "$REPORT" ] || { silent=0; tell "waiting: $rest"; }
  sleep "$PAUSE"
done
give_back
tell "$rest"
[ -z "$left" ] || {
  printf 'run.sh: what it holds is done, and not all of the plan: %s\n' "$left" >&2
  exit 3
}
"""


def script(carrier: Carrier, given: Mapping[str, str], whole: str, waves: int, left: str) -> bytes:
    """Return the script; ``given`` are values for settings that the plan knows of.

    ``whole`` is the way from the script to the folder in which both ways keep what is held;
    ``left`` says what the waves leave out, and why.
    """
    lines = [
        "#!/bin/sh",
        "# Carries out the plan of this folder, wave by wave, as README.md says; it may be stopped",
        "# at any time and run again. Before each wave the system is compared with the plan.",
        "set -u",
        "",
    ]
    for name, default, meaning in settings_of(carrier, given):
        lines.append(f"# {meaning}")
        lines.append(f"{name}=${{{name}-{shlex.quote(default)}}}")
    lines += [
        "# the folder, from here, that is the plan's as a whole: both ways hold the same there",
        f"whole={whole}",
        f"waves={waves}",
        "# what they leave out, and why",
        f"left={shlex.quote(left)}",
    ]
    text = "\n".join(lines) + "\n" + DEFAULTS + carrier.shell + LOOP
    return text.encode()


def settings_of(carrier: Carrier, given: Mapping[str, str]) -> Sequence[Setting]:
    """Return all that the script asks of the environment; ``given`` are values a plan knows."""
    all_of = (*carrier.settings, *SHARED)
    return [one._replace(default=given.get(one.name, one.default)) for one in all_of]
