"""What all tests need of the process that they run in."""

import os
import signal

from hypothesis import settings

# A job in the background begins with Ctrl-C ignored, and so would every command that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables are laid out for a terminal of the width that the environment tells of, if it does.
os.environ.pop("COLUMNS", None)

# An example that takes long on a busy machine is no fault.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
