"""What all tests begin with."""

import signal

# As in a terminal, for the processes that tests start and interrupt: where tests run in the background it may be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
