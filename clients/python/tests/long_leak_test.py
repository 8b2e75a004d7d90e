"""The leak test over 100,000 forwards: a few bytes of each would show."""

import unittest

from clients.python.tests import leak_test


class LongLeakTest(leak_test.LeakTest):
    forwards = 100_000


if __name__ == "__main__":
    unittest.main()
