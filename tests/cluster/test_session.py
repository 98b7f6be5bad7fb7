"""Starting and ending Spark: quiet, harmless to the process, with errors in one sentence."""

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from levada.runtime.spark import spark_session as sessions
from levada.runtime.spark.spark_session import missing_settings, start_session, stop_session
from levada.runtime.spark.spark_settings import session_environment, session_settings
from support.polling import until

pytestmark = pytest.mark.spark

QUIET_RUN = """
import os, signal, sys
from pathlib import Path
from levada.runtime.executor import Job
from levada.runtime.spark.spark_executor import SparkExecutor
from levada.runtime.spark.spark_session import start_session, stop_session

before = dict(os.environ), signal.getsignal(signal.SIGINT)
session = start_session("local[1]", scratch=Path("scratch"))
session.sparkContext.addPyFile(sys.argv[1])
jvm = session.sparkContext._gateway.proc.pid
assert os.getsid(jvm) == jvm != os.getsid(0), "Spark's JVM has a session of its own"
assert (dict(os.environ), signal.getsignal(signal.SIGINT)) == before, "this process is as it was"
job = Job(b"0", [], 1, 1, ("spark_jobs:intake", "spark_jobs:slow_stage"))
assert SparkExecutor(session).run(job) == [b"slept"]
stop_session(session)
assert not os.path.exists(f"/proc/{jvm}"), "the JVM has ended"
assert sorted(os.listdir()) == ["scratch"], "nothing is left in the working folder"
"""

DYING_RUN = """
import os, sys
from pathlib import Path
from levada.runtime.spark.spark_session import start_session
session = start_session("local[1]", scratch=Path("scratch"))
print(session.sparkContext._gateway.proc.pid, flush=True)
os.kill(os.getpid(), 9)
"""

BROKEN_RUN = """
from pathlib import Path
from levada.errors import JavaError
from levada.runtime.spark.spark_session import start_session
try:
    config = {"spark.driver.extraJavaOptions": "-Xss1z"}
    start_session("local[1]", scratch=Path("scratch"), config=config)
except JavaError as error:
    print(error)
"""


def test_a_run_says_nothing_and_leaves_nothing(run_script: Any) -> None:
    process = run_script(QUIET_RUN, Path(__file__).parent / "spark_jobs.py")
    assert (*process.communicate(timeout=400), process.returncode) == ("", "", 0)


def test_spark_ends_with_a_killed_driver(run_script: Any) -> None:
    process = run_script(DYING_RUN)
    out, _ = process.communicate(timeout=400)
    assert process.returncode == -signal.SIGKILL
    until(lambda: not psutil.pid_exists(int(out)))


def test_a_jvm_that_does_not_start_is_one_sentence(run_script: Any) -> None:
    out, err = run_script(BROKEN_RUN).communicate(timeout=400)
    assert out.startswith("Spark's JVM did not start: Invalid thread stack size")
    assert "spark.log" in out
    assert err == ""


def test_a_second_start_uses_the_running_session_and_stops_with_the_last(
    spark: Any, tmp_path: Path, recwarn: Any
) -> None:
    again = start_session(scratch=tmp_path / "unused")
    assert again.sparkContext is spark.sparkContext
    assert not [w for w in recwarn if "Levada" in str(w.message)], "our own session lacks nothing"
    stop_session(again)
    assert spark.sparkContext.parallelize([1]).count() == 1


def test_a_session_of_the_users_is_told_what_it_lacks_and_never_stopped(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_users", type(sessions._users)())
    monkeypatch.setattr(sessions, "EXECUTION", sessions.EXECUTION | {"spark.locality.wait": "7s"})
    with pytest.warns(UserWarning, match=r"spark.locality.wait=0; .* with spark.locality.wait=7s"):
        session = start_session(scratch=tmp_path)
    assert len(missing_settings(session)) == 1
    stop_session(session)
    assert spark.sparkContext.parallelize([1]).count() == 1


def test_the_users_settings_win_and_jvm_options_are_joined() -> None:
    given = {"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Dx=1"}
    settings = session_settings("local[2]", given, Path("/scratch"))
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.extraJavaOptions"].endswith("TieredStopAtLevel=1 -Dx=1")
    assert settings["spark.executorEnv.POLARS_MAX_THREADS"] == "1"


def test_a_cluster_keeps_its_addresses() -> None:
    assert "spark.driver.host" not in session_settings("spark://master:7077", {}, Path("/scratch"))
    assert "SPARK_LOCAL_IP" not in session_environment("spark://master:7077", os.environ)


def test_workers_share_the_kernels_cache_of_this_process() -> None:
    assert (
        session_environment("local[1]", {**os.environ, "NUMBA_CACHE_DIR": "/c"})["NUMBA_CACHE_DIR"]
        == "/c"
    )
