"""The list of mutations still fits the tree; whether tests notice them takes
run_mutations.py, which builds the tree once for each."""

import unittest

import mutations
import source_tree


class MutationsTest(unittest.TestCase):
    def test_each_changes_text_that_occurs_once(self):
        for mutation in mutations.MUTATIONS:
            with self.subTest(mutation.name):
                self.assertEqual(source_tree.text(mutation.path).count(mutation.before), 1)
                self.assertNotEqual(mutation.before, mutation.after)

    def test_each_runs_tests_that_exist(self):
        labels = {target.label() for target in source_tree.targets()}
        for mutation in mutations.MUTATIONS:
            with self.subTest(mutation.name):
                self.assertTrue(mutation.tests)
                self.assertLessEqual(set(mutation.tests), labels)

    def test_names_tell_them_apart(self):
        names = [mutation.name for mutation in mutations.MUTATIONS]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
