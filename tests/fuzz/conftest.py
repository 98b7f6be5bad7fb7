"""All tests of the folder draw from one seed and keep to a limit of memory."""

from limits import bounded_memory as bounded_memory
from limits import seed as seed
