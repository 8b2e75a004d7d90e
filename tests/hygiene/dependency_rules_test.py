"""D1: dependencies point downwards only.

    clients --> proto <-- service --> planner --> core        tests --> everything
"""

import re
import unittest

import source_tree

# What targets under a folder may use; the longest match counts.
MAY_USE = {
    "core": ["core"],
    "planner": ["core", "planner"],
    "proto": ["core/base", "proto"],
    # Recipes must mean the same to the daemon and to the offline verbs.
    "proto/recipe": ["core/base", "core/recipe", "core/tensor", "proto"],
    "service": ["core", "planner", "proto", "service"],
    "clients": ["clients", "core/base", "core/numeric", "proto"],
    # The offline verbs plan, inspect and verify by themselves.
    "clients/cli": ["clients", "core", "planner", "proto"],
    "tests": ["clients", "core", "planner", "proto", "service", "tests", "bazel", "tools"],
    "bazel": ["bazel"],
    "tools": ["tools"],
}

# Inside core, each may use what stands before it, and its own line.
CORE_ORDER = [
    {"core/base"},
    {"core/numeric"},
    {"core/recipe", "core/tensor"},
    {"core/device"},
    {"core/quant", "core/quant/cuda"},
    {"core/gemm", "core/gemm/cublaslt"},
    {"core/layer"},
    {"core/checkpoint"},
]

# External libraries that not everybody may use: label -> folders.
EXTERNAL = {
    r"@system//:grpc.*": ["clients", "proto", "service", "tests"],
    r"@system//:protobuf": ["clients", "proto", "service", "tests"],
    r"@system//:onednn": ["core/gemm", "tests"],
    r"@system//:cli11": ["clients/cli", "service", "tests"],
    r"@cuda//.*": ["core/device", "core/quant/cuda", "core/gemm/cublaslt", "tests/gpu"],
}

DEVICE_USERS = [
    "core/device",
    "core/quant/cuda",
    "core/gemm/cublaslt",
    "service",
    "clients/cli",
    "tests",
]


def is_under(package, folders):
    return any(package == folder or package.startswith(folder + "/") for folder in folders)


def package_of(label):
    return label[2:].split(":")[0]


def may_use(package):
    folders = [folder for folder in MAY_USE if is_under(package, [folder])]
    return MAY_USE[max(folders, key=len)] if folders else None


def core_rank(package):
    for rank, packages in enumerate(CORE_ORDER):
        if package in packages:
            return rank
    return None


def why_not(target, label):
    """The reason why `target` may not use `label`, or None."""
    if label.startswith("@"):
        for pattern, folders in EXTERNAL.items():
            if re.fullmatch(pattern, label) and not is_under(target.package, folders):
                return f"only {', '.join(folders)} may use it"
        return None
    package = package_of(label)
    if is_under(package, ["tests"]):
        return None if target.testonly else "only tests may use what lies under tests"
    allowed = may_use(target.package)
    if allowed is None:
        return "the folder has no place in the order: give it one here and in ARCHITECTURE.md"
    if not is_under(package, allowed):
        return f"may use {', '.join(allowed)}"
    if is_under(package, ["core/device"]) and not is_under(target.package, DEVICE_USERS):
        return "devices are used through an interface"
    if is_under(target.package, ["core"]):
        if core_rank(target.package) is None or core_rank(package) is None:
            return "the folder has no place in CORE_ORDER"
        if core_rank(package) > core_rank(target.package):
            return "core's folders use only those before them"
    return None


class DependencyRulesTest(unittest.TestCase):
    def test_d1_dependencies_point_downwards(self):
        targets = [t for t in source_tree.targets() if t.deps]
        self.assertGreater(len(targets), 50, "the test looks at the wrong tree")
        violations = [
            f"{target.label()} uses {label}: {why}"
            for target in targets
            for label in target.deps
            if (why := why_not(target, label))
        ]
        self.assertFalse(violations, "\n" + "\n".join(violations))

    def test_b1_a_target_names_the_libraries_it_includes(self):
        """What layering_check says under clang, without compiling anything."""
        owners = {}
        for target in source_tree.targets():
            for source in target.sources:
                if source.endswith((".h", ".cuh")):
                    owners.setdefault(source, set()).add(target.label())
        violations = [
            f"{target.label()}: {source} includes {header}: name "
            f"{' or '.join(sorted(owners[header]))} in deps"
            for target in source_tree.targets()
            for source in target.sources
            if source.endswith((".h", ".cc", ".cu", ".cuh"))
            for header in re.findall(r'^#include "([^"]+)"', source_tree.text(source), re.MULTILINE)
            if header in owners and not owners[header] & {target.label(), *target.deps}
        ]
        self.assertFalse(violations, "\n" + "\n".join(violations))

    def test_the_rules_refuse(self):
        """A rule that allows everything would pass the test above."""

        def target(package, testonly=False):
            return source_tree.Target(package, "pw_cc_library", "t", testonly, (), ())

        refused = [
            (target("core/quant"), "//planner:memory_model"),
            (target("core/base"), "//core/numeric:dtype"),
            (target("core/tensor"), "//core/quant:quantizer"),
            (target("core/layer"), "//core/device:device_buffer"),
            (target("planner"), "//service/weights:model_catalog"),
            (target("planner"), "//proto:planewise"),
            (target("planner"), "@system//:grpc"),
            (target("proto/frame"), "//core/tensor:plane_layout"),
            (target("clients/cpp"), "//planner:memory_model"),
            (target("clients/cpp"), "//service:server"),
            (target("service/rpc"), "//clients/cpp:client"),
            (target("service/rpc"), "//tests/testing:seed"),
            (target("service/rpc"), "@cuda//:cudart"),
            (target("elsewhere"), "//core/base:error"),
        ]
        for from_target, label in refused:
            with self.subTest(target=from_target.package, label=label):
                self.assertIsNotNone(why_not(from_target, label))
        allowed = [
            (target("clients/cli"), "//planner:memory_model"),
            (target("service/rpc", testonly=True), "//tests/testing:seed"),
            (target("core/quant/cuda"), "//core/device:cuda_status"),
            (target("core/gemm"), "@system//:onednn"),
        ]
        for from_target, label in allowed:
            with self.subTest(target=from_target.package, label=label):
                self.assertIsNone(why_not(from_target, label))


if __name__ == "__main__":
    unittest.main()
