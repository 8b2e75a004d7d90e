"""Link flags of the system's libraries.

From `pkg-config --libs`, each flag once, in an order that also links statically.
"""

_OF_THE_C_LIBRARY = ["-lpthread", "-lrt", "-ldl"]

def _archives(flags):
    return [
        "-l:lib{}.a".format(f[2:]) if f.startswith("-l") and f not in _OF_THE_C_LIBRARY else f
        for f in flags
    ]

def libraries(flags):
    """Link flags; under --config=portable the same libraries as archives."""
    return select({
        "@planewise//bazel:portable": _archives(flags),
        "//conditions:default": flags,
    })

# absl_status, absl_statusor, absl_cord, absl_str_format, absl_flat_hash_map, absl_time,
# absl_any_invocable
ABSEIL = [
    "-labsl_statusor",
    "-labsl_status",
    "-labsl_strerror",
    "-labsl_str_format_internal",
    "-labsl_cord",
    "-labsl_cordz_info",
    "-labsl_cord_internal",
    "-labsl_cordz_functions",
    "-labsl_cordz_handle",
    "-labsl_raw_hash_set",
    "-labsl_hashtablez_sampler",
    "-labsl_exponential_biased",
    "-labsl_synchronization",
    "-labsl_graphcycles_internal",
    "-labsl_stacktrace",
    "-labsl_symbolize",
    "-labsl_debugging_internal",
    "-labsl_demangle_internal",
    "-labsl_malloc_internal",
    "-labsl_time",
    "-labsl_civil_time",
    "-labsl_time_zone",
    "-labsl_hash",
    "-labsl_city",
    "-labsl_strings",
    "-labsl_strings_internal",
    "-labsl_throw_delegate",
    "-labsl_bad_optional_access",
    "-labsl_bad_variant_access",
    "-labsl_low_level_hash",
    "-latomic",
    "-lrt",
    "-labsl_base",
    "-labsl_raw_logging_internal",
    "-labsl_log_severity",
    "-labsl_spinlock_wait",
    "-labsl_int128",
    "-lpthread",
]

# protobuf
PROTOBUF = [
    "-lprotobuf",
]

# grpc++, less what ABSEIL names
GRPC = [
    "-lgrpc++",
    "-lgrpc",
    "-laddress_sorting",
    "-lre2",
    "-lupb",
    "-lcares",
    "-lz",
    "-lgpr",
    "-lssl",
    "-lcrypto",
    "-labsl_random_distributions",
    "-labsl_random_seed_sequences",
    "-labsl_random_internal_pool_urbg",
    "-labsl_random_internal_randen",
    "-labsl_random_internal_randen_hwaes",
    "-labsl_random_internal_randen_hwaes_impl",
    "-labsl_random_internal_randen_slow",
    "-labsl_random_internal_platform",
    "-labsl_random_internal_seed_material",
    "-labsl_random_seed_gen_exception",
]

# Registers itself when linked: the linker must not drop it.
GRPC_REFLECTION = [
    "-Wl,--no-as-needed",
    "-lgrpc++_reflection",
    "-Wl,--as-needed",
]
