"""Ports that Spark opens on this machine: a stranger who finds one is refused."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.settings import Settings
from millpond.engine.spark import conf

if TYPE_CHECKING:
    from .conftest import RunScript

RPC_REQUEST, RPC_RESPONSE, RPC_FAILURE, STREAM_REQUEST, STREAM_FAILURE = 3, 4, 5, 6, 8
DATE = bytes.fromhex(
    "aced00057372000e6a6176612e7574696c2e44617465686a81014b59741903000078707708"
) + struct.pack(">q", 0) + b"x"  # fmt: skip
"""A `java.util.Date`, as Java writes objects: a stranger must not have it read."""


def utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def message_for(endpoint: str, port: int) -> bytes:
    """A message as Spark's driver gets them: no sender, the receiver, an object."""
    receiver = b"\1" + utf("127.0.0.1") + struct.pack(">i", port) + utf(endpoint)
    return b"\0" + receiver + DATE


def answer(port: int, kind: int, head: bytes, body: bytes = b"") -> tuple[int, str]:
    """What a port answers to one frame of Spark's protocol: the kind of message, and its text."""
    frame = bytes([kind]) + head + body
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        sock.sendall(struct.pack(">q", len(frame) + 8) + frame)
        found = b""
        while len(found) < 8 or len(found) < struct.unpack(">q", found[:8])[0]:
            got = sock.recv(65536)
            if not got:
                return 0, "closed"
            found += got
    return found[8], found[9:].decode("utf-8", "replace")


def asked(port: int, body: bytes) -> tuple[int, str]:
    return answer(port, RPC_REQUEST, struct.pack(">qi", 7, len(body)), body)


def driver_port(spark: Any) -> int:
    return int(spark.sparkContext.getConf().get("spark.driver.port"))


def block_port(spark: Any) -> int:
    (address,) = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ").split()
    return int(address.rpartition(":")[2])


@pytest.mark.spark
@pytest.mark.parametrize(
    "endpoint", ["endpoint-verifier", "HeartbeatReceiver", "BlockManagerMaster"]
)
def test_the_driver_reads_no_objects_of_strangers(spark: Any, endpoint: str) -> None:
    port = driver_port(spark)
    kind, text = asked(port, message_for(endpoint, port))
    assert kind in (0, RPC_FAILURE)
    assert "1970" not in text
    assert "SaslMessage" in text or "closed" in text
    assert spark.range(3).count() == 3


@pytest.mark.spark
def test_the_block_manager_reads_no_objects_of_strangers(spark: Any) -> None:
    upload = b"\1" + b"".join(
        struct.pack(">i", len(x)) + x for x in (b"a", b"b", b"rdd_0_0", DATE, b"x")
    )
    kind, text = asked(block_port(spark), upload)
    assert kind in (0, RPC_FAILURE)
    assert "SaslMessage" in text or "closed" in text
    assert spark.range(3).count() == 3


@pytest.mark.spark
def test_py4j_hears_nobody_without_its_token(spark: Any) -> None:
    gateway = spark.sparkContext._gateway
    parameters = gateway.gateway_parameters
    assert parameters.auth_token
    with socket.create_connection(("127.0.0.1", parameters.port), timeout=20) as sock:
        sock.sendall(b"c\nz:java.lang.System\ngetProperty\nsuser.name\ne\n")
        said = sock.recv(65536)
    assert b"!y" not in said
    assert os.environ.get("USER", "root").encode() not in said


@pytest.mark.spark
def test_ports_are_of_this_machine_alone(spark: Any) -> None:
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("the system does not list its ports in /proc")
    wanted = {driver_port(spark), block_port(spark)}
    names = [table, Path("/proc/net/tcp6")]
    text = "\n".join(name.read_text() for name in names if name.exists())
    lines = [line.split() for line in text.splitlines() if ":" in line]
    listening = {fields[1] for fields in lines if fields[3] == "0A"}
    found = {
        each.rpartition(":")[0] for each in listening if int(each.rpartition(":")[2], 16) in wanted
    }
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}


@pytest.mark.spark
def test_the_secret_is_shown_nowhere(spark: Any) -> None:
    context = spark.sparkContext
    assert context.getConf().get("spark.authenticate") == "true"
    # On one machine Spark keeps a secret of its own in memory, and no setting has it.
    assert context.getConf().get("spark.authenticate.secret") is None
    hadoop = spark._jvm.org.apache.hadoop
    credentials = hadoop.security.UserGroupInformation.getCurrentUser().getCredentials()
    secret = credentials.getSecretKey(hadoop.io.Text("sparkCookie")).decode()
    assert len(secret) >= 32
    for process in Path("/proc").glob("[0-9]*"):
        try:
            shown = (process / "cmdline").read_bytes()
        except OSError:
            continue
        assert secret.encode() not in shown


@pytest.mark.spark
@pytest.mark.slow
def test_executors_in_processes_of_their_own(run_script: RunScript) -> None:
    done = run_script(
        """
        from pathlib import Path
        from millpond.base.settings import Settings
        from millpond.engine.spark.session import session_log, spark_session
        spark = spark_session(Settings.load(env={}, spark_master="local-cluster[1,1,1024]"))
        assert spark.range(0, 100, 1, 4).repartition(3).count() == 100
        secret = spark.sparkContext.getConf().get("spark.authenticate.secret")
        assert len(secret) >= 32
        for process in Path("/proc").glob("[0-9]*"):
            try:
                assert secret.encode() not in (process / "cmdline").read_bytes()
            except OSError:
                pass
        assert secret not in session_log().read_text()
        # What the environment page of the UI and the event log would show.
        hidden = spark.sparkContext._jsc.sc().conf().get("spark.redaction.regex", "")
        assert hidden in ("", "(?i)secret|password|token|access[.]?key")
        print("done")
        """
    )
    assert done.stderr == ""
    assert done.stdout == "done\n"


def test_what_leaves_the_machine_is_encrypted() -> None:
    def given(master: str, **more: str) -> dict[str, str]:
        settings = Settings.load(env={}, spark_master=master, spark_conf=more)
        return conf.started_conf(settings.spark)

    here = given("local[2]")
    assert here["spark.authenticate"] == "true"
    assert "spark.network.crypto.enabled" not in here
    assert (
        given("local[2]", **{"spark.driver.bindAddress": "0.0.0.0"})["spark.network.crypto.enabled"]
        == "true"
    )
    assert "spark.authenticate" not in given("spark://host:7077")
    shared = {"spark.authenticate": "true", "spark.authenticate.secret": "of the cluster"}
    assert given("spark://host:7077", **shared)["spark.network.crypto.enabled"] == "true"
    off = given("local[2]", **{"spark.authenticate": "false"})
    assert off["spark.authenticate"] == "false"


def test_each_local_cluster_has_a_secret_of_its_own(tmp_path: Path) -> None:
    started = conf.started_conf(Settings.load(env={}, spark_master="local-cluster[1,1,1024]").spark)
    secrets = [
        conf.scratch_conf(started, tmp_path, log_level="ERROR")["spark.authenticate.secret"]
        for _ in range(2)
    ]
    assert len(set(secrets)) == 2
    assert "spark.authenticate.secret" not in started
