"""``python -m tcpcast``."""

import sys

from tcpcast.cli import main

sys.exit(main())
