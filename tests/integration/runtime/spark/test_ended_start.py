"""A JVM that ends while the session starts: a short run ends before Spark is there."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os
import signal
import sys
from pathlib import Path

from pyspark import SparkContext

from levada.errors import EngineError
from levada.runtime.spark import spark_session

connect = spark_session._connect

def connect_and_kill(jvm):
    # kills the JVM between the next command and its answer, and resets the connection
    connect(jvm)
    connection = SparkContext._gateway._gateway_client.get_thread_connection()

    class KillingStream:
        def readline(self):
            os.killpg(jvm.process.pid, signal.SIGKILL)
            jvm.process.wait()
            raise ConnectionResetError

        def close(self):
            pass

    connection.stream = KillingStream()

spark_session._connect = connect_and_kill
try:
    spark_session.start_session("local[1]", scratch=Path(sys.argv[1]))
except EngineError as error:
    print(error.message)
"""


def test_a_jvm_that_ends_during_a_call_of_the_start_prints_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "scratch")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("Spark did not start on local[1]: "), done.stdout + done.stderr
    assert (done.returncode, done.stderr) == (0, "")
