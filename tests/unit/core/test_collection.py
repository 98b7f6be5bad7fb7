"""The search for cycles goes on after a pause, however it ends, and is not begun by one."""

import gc

import pytest

from levada.core.gc_control import collection_paused


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_afterwards_as_it_was(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(KeyError), collection_paused():
            assert not gc.isenabled()
            with collection_paused():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
