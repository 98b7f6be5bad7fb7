"""What a task says of the files that it wrote."""

import msgspec

from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.unwritable_results import Unwritable
from levada.runtime.publication.distributed_writes import Written


def test_results_that_a_format_cannot_hold_reach_the_driver() -> None:
    told = Written({"q": 2}, unwritable=[Unwritable("q", Format.SRX, 1000, "odd", '?o="x"')])
    found = msgspec.json.decode(msgspec.json.encode(told), type=Written)
    assert (found.reports, found.unwritable) == (told.reports, told.unwritable)
    assert found.unwritable[0].form is Format.SRX
