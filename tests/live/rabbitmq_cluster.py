"""A RabbitMQ cluster on loopback: nodes of one host, told apart by their names and ports."""

import json
import os
import re
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.live import parts
from tests.live.daemons import ASIDE, Daemons, call, free_ports, until

BIN = Path("/usr/lib/rabbitmq/bin")  # the tools themselves; those on the path change the user first
LOOPBACK = "-kernel inet_dist_use_interface {127,0,0,1}"
CHANNEL = """
{ok, C} = amqp_connection:start({amqp_params_direct, none, none, <<"/">>, node(), none, []}),
{ok, Ch} = amqp_connection:open_channel(C),
"""
DECLARE = """
lists:foreach(fun(Q) -> amqp_channel:call(Ch, {'queue.declare', 0, Q, false, true, false, false,
false, [{<<"x-queue-type">>, longstr, <<"quorum">>},
{<<"x-quorum-initial-group-size">>, signedint, MEMBERS}]}) end, QUEUES),
amqp_connection:close(C).
"""
PUBLISH = """
amqp_channel:call(Ch, {'confirm.select', false}),
lists:foreach(fun({Q, B}) -> amqp_channel:call(Ch, {'basic.publish', 0, <<>>, Q, false, false},
{amqp_msg, {'P_basic', undefined, undefined, undefined, 2, undefined, undefined, undefined,
undefined, undefined, undefined, undefined, undefined, undefined, undefined}, B}) end, MESSAGES),
Confirmed = amqp_channel:wait_for_confirms(Ch, 30), amqp_connection:close(C), Confirmed.
"""
READ = """
Get = fun(Get, Q, Seen) -> case amqp_channel:call(Ch, {'basic.get', 0, Q, false}) of
{{'basic.get_ok', _, _, _, _, _}, {amqp_msg, _, B}} -> Get(Get, Q, [B | Seen]);
_ -> lists:reverse(Seen) end end,
Found = [{Q, Get(Get, Q, [])} || Q <- QUEUES],
amqp_connection:close(C),
iolist_to_binary([[Q, <<"=">>, lists:join(<<",">>, Bs), <<";">>] || {Q, Bs} <- Found]).
"""


def ready() -> None:
    """Install what is missing."""
    parts.debian(("rabbitmqctl", "epmd"), ("rabbitmq-server",))


class RabbitMQ:
    """Nodes ``n1@localhost`` and so on; queues begin on the first ``early`` of them."""

    def __init__(self, nodes: int, early: int) -> None:
        ready()
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-rabbitmq-"))
        self.daemons = Daemons(self.folder)
        self.mapper, *ports = free_ports(1 + 2 * nodes)
        self.ports = {n: (ports[2 * n - 2], ports[2 * n - 1]) for n in range(1, nodes + 1)}
        try:
            (self.folder / ".erlang.cookie").write_text("evenkeel")
            (self.folder / ".erlang.cookie").chmod(0o400)
            (self.folder / "plugins").write_text("[].\n")
            mapper = ["epmd", "-port", str(self.mapper), "-address", "127.0.0.1"]
            self.daemons.start("epmd", mapper, self.env(1))
            # who comes first would start a mapper of its own, which outlives everything
            until("the port mapper", self._mapped, timeout=30)
            for node in range(1, early + 1):
                self.join(node)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.daemons.stop()

    # What its own tools say and do.

    def env(self, node: int = 1) -> dict[str, str]:
        """What a shell needs so that its tools are of this cluster."""
        amqp, distribution = self.ports[node]
        own = {
            "HOME": self.folder,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "ERL_EPMD_PORT": self.mapper,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self.name(node),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": amqp,
            "RABBITMQ_DIST_PORT": distribution,
            "RABBITMQ_MNESIA_BASE": self.folder / "data",
            "RABBITMQ_LOG_BASE": self.folder / "log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "plugins",
            "RABBITMQ_CONF_ENV_FILE": self.folder / "none.conf",
            "RABBITMQ_CONFIG_FILE": self.folder / "none",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none " + LOOPBACK,
            "RABBITMQ_CTL_ERL_ARGS": "+S 1:1 +sbwt none",
        }
        return os.environ | {name: str(value) for name, value in own.items()}

    def tool(self, name: str, *words: object, node: int = 1, timeout: float = 180) -> str:
        """Run one of its tools."""
        argv = [*ASIDE, BIN / name, *map(str, words)]
        return call(argv, env=self.env(node), timeout=timeout, cwd=self.folder)

    def ctl(self, *words: object, node: int = 1) -> str:
        return self.tool("rabbitmqctl", "-q", *words, node=node)

    def run(self, script: Path, node: int = 1) -> None:
        """Run a script as an operator would."""
        call([*ASIDE, "sh", script], env=self.env(node), timeout=280, cwd=self.folder)

    def dumps(self, folder: Path, node: int = 1) -> list[Path]:
        """Write what an operator would: the queues and the status of the cluster."""
        folder.mkdir(parents=True, exist_ok=True)
        fields = ("name", "type", "leader", "members", "online", "message_bytes")
        asked = {
            "queues.json": ("list_queues", *fields, "--formatter", "json"),
            "status.json": ("cluster_status", "--formatter", "json"),
        }
        for name, words in asked.items():
            (folder / name).write_text(self.ctl(*words, node=node))
        return [folder / name for name in asked]

    def declare(self, queues: Sequence[str], members: int) -> None:
        """Make quorum queues; the node that is asked leads them."""
        code = DECLARE.replace("MEMBERS", str(members)).replace("QUEUES", _binaries(queues))
        self.eval(CHANNEL + code)

    def publish(self, messages: Sequence[tuple[str, str]]) -> None:
        """Write messages, each acknowledged by the members of its queue."""
        pairs = ",".join(f'{{<<"{queue}">>,<<"{body}">>}}' for queue, body in messages)
        said = self.eval(CHANNEL + PUBLISH.replace("MESSAGES", f"[{pairs}]"))
        assert said.strip() == "true", said

    def messages(self, queues: Sequence[str], node: int = 1) -> dict[str, list[str]]:
        """Read all messages of queues without taking them out."""
        said = self.eval(CHANNEL + READ.replace("QUEUES", _binaries(queues)), node=node)
        plain = re.sub(r'"\s*"', "", said.strip()).strip('<">')  # Erlang breaks long lines
        listed = [one.partition("=") for one in plain.split(";") if one]
        return {queue: bodies.split(",") if bodies else [] for queue, _, bodies in listed}

    def eval(self, code: str, node: int = 1) -> str:
        return self.ctl("eval", " ".join(code.split()), node=node)

    def status(self, node: int = 1) -> Any:
        return json.loads(self.ctl("cluster_status", "--formatter", "json", node=node))

    # Its life.

    @staticmethod
    def name(node: int) -> str:
        return f"n{node}@localhost"

    def join(self, node: int) -> None:
        """Start a node, and let it join the first."""
        self.start(node)
        if node > 1:
            self.ctl("stop_app", node=node)
            self.ctl("join_cluster", self.name(1), node=node)
            self.ctl("start_app", node=node)

    def start(self, node: int) -> None:
        self.daemons.start(self.name(node), [BIN / "rabbitmq-server"], self.env(node))
        until(f"{self.name(node)} up", lambda: self.ctl("await_startup", node=node) or True,
              timeout=180)  # fmt: skip

    def kill(self, node: int, asked: int = 1) -> None:
        """End a node as a failing machine would, and wait until the others know."""
        name, count = self.name(node), self.listed(asked)
        self.daemons.kill(name)
        until(f"{name} gone", lambda: name not in self.status(asked)["running_nodes"], timeout=120)
        # a queue that it led is in no listing until another one leads
        until("all queues listed", lambda: self.listed(asked) == count, timeout=120, pause=1.0)

    def listed(self, node: int) -> int:
        """How many queues a node lists."""
        return len(json.loads(self.ctl("list_queues", "name", "--formatter", "json", node=node)))

    def _mapped(self) -> bool:
        socket.create_connection(("127.0.0.1", self.mapper), 5).close()
        return True

    def all_online(self) -> bool:
        """Whether every member of every queue takes part."""
        listed = self.ctl("list_queues", "members", "online", "--formatter", "json")
        return all(sorted(one["members"]) == sorted(one["online"]) for one in json.loads(listed))


def _binaries(texts: Sequence[str]) -> str:
    return "[" + ",".join(f'<<"{text}">>' for text in texts) + "]"
