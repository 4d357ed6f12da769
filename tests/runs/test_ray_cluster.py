"""A Ray cluster of two machines, of which one is lost: the same answers as on one machine; and clusters that are not.

The cluster is one of several processes here. It starts slowly: `make nightly` runs what needs it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from random_killing import contents
from tiny import ROWS, write_task

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.verifier.cli import main
from swapproof.verifier.roads import certify
from swapproof.verifier.runs.jobs.ray_cluster import MOST, batch_size, connected
from swapproof.verifier.runs.store import Store

Capture = pytest.CaptureFixture[str]
MANY = ROWS * 60
COMMAND = [sys.executable, "-c", "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"]
ROOT = Path(__file__).parents[2]


def test_batches_are_long_in_the_middle_and_short_at_the_end() -> None:
    assert batch_size(0.0, 100_000, 4) == MOST
    assert batch_size(0.5, 100_000, 4) == 4
    assert batch_size(100.0, 100_000, 4) == 1
    assert batch_size(0.001, 400, 10) == 5


class TestAbsent:
    def test_a_cluster_that_is_not_there(self, tmp_path: Path, capsys: Capture) -> None:
        pytest.importorskip("ray")
        task = write_task(tmp_path / "task", ROWS[:1])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for cluster in (f"ray://127.0.0.1:{port}", f"127.0.0.1:{port}"):
            assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--cluster", cluster]) == 2
            error = capsys.readouterr().err
            assert "nobody answers there" in error
            assert len(error.splitlines()) == 1
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("cluster", ["somewhere", "http://127.0.0.1:80/x", "ray://127.0.0.1"])
    def test_what_is_no_address(self, cluster: str) -> None:
        pytest.importorskip("ray")
        with pytest.raises(BadInput, match="can be auto, ray://HOST:PORT or HOST:PORT"), connected(cluster):
            pass

    def test_a_cluster_that_may_ask_for_a_token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ray = pytest.importorskip("ray")

        def refusing(**_: object) -> None:
            raise ConnectionError("unauthenticated")

        monkeypatch.setattr(ray, "init", refusing)
        said = r"no Ray cluster answers \(unauthenticated\), or it asks for a token; set RAY_AUTH_MODE=token and"
        with pytest.raises(BadInput, match=said), connected("auto"):
            pass

    def test_without_ray_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(Unsupported, match=r"swapproof\[ray\]"), connected("auto"):
            pass


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 << 20}
    found: Any = Cluster(initialize_head=True, head_node_args=head)
    yield found
    found.shutdown()


@pytest.mark.nightly
class TestCluster:
    def test_a_machine_that_is_lost_changes_nothing(self, cluster: Any, tmp_path: Path) -> None:
        """The driver begins in the root of the repository, where `encodings/` lies."""
        task, run = write_task(tmp_path / "task", MANY), tmp_path / "run"
        machine = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
        process = subprocess.Popen(
            [*COMMAND, "certify", str(task), "--out", str(run), "--cluster", cluster.address],
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        lost, workers = False, set[str]()
        while process.poll() is None:
            time.sleep(0.05)
            if (run / "store.sqlite").exists():
                with Store.open(run / "store.sqlite", readonly=True) as store:
                    leases = store.connection.execute("SELECT worker FROM leases").fetchall()
                    workers |= {worker for (worker,) in leases}
                    if not lost and len(workers) > 1 and len(list(store.finished("min_swaps"))) > 20:
                        cluster.remove_node(machine, allow_graceful=False)
                        lost = True
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
        assert lost
        assert len(workers) > 1
        peaceful = certify(task, tmp_path / "peaceful").folder
        assert contents(run) == contents(peaceful)
        assert main(["check", str(run), "--quiet"]) == 0

    def test_attack_and_measure_work_there_too(self, cluster: Any, tmp_path: Path) -> None:
        task = write_task(tmp_path / "task")
        where = ["--cluster", cluster.address]
        with connected(cluster.address):
            for command in (["attack", "--method", "greedy"], ["measure", "--quantity", "pr", "--radius", "1"]):
                found = []
                for options in ([], where):
                    run = tmp_path / f"{command[0]}-{len(options)}"
                    assert main([command[0], str(task), "--out", str(run), *command[1:], *options]) == 0
                    lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
                    found.append([without_clock(line) for line in lines])
                assert found[0] == found[1]


def without_clock(line: dict[str, Any]) -> dict[str, Any]:
    for part in (line, line.get("attack") or {}):
        part.pop("seconds", None)
    return line
