"""What the tests of the folder are given."""

from session import run_script as run_script
from session import spark as spark
