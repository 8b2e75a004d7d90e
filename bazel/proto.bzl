"""Protobuf and gRPC code generation with the system's protoc."""

load("//bazel:cc.bzl", "COPTS")

def pw_proto_library(name, srcs, deps = [], proto_deps = [], grpc = False, **kwargs):
    """A cc_library of the messages (and services) in .proto files under //proto.

    Args:
      name: the cc_library; `NAME_protos` holds the sources for other rules.
      srcs: .proto files, in the package //proto.
      deps: other pw_proto_library targets that srcs import, as labels.
      grpc: also generate service stubs.
      **kwargs: passed to the cc_library.
    """
    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [d + "_protos" for d in deps],
        visibility = ["//visibility:public"],
    )
    outs = []
    for src in srcs:
        stem = src[:-len(".proto")]
        outs += [stem + ".pb.cc", stem + ".pb.h"]
        if grpc:
            outs += [stem + ".grpc.pb.cc", stem + ".grpc.pb.h"]
    plugin = ""
    if grpc:
        plugin = " --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(RULEDIR)"
    native.genrule(
        name = name + "_generated",
        srcs = [":" + name + "_protos"],
        outs = outs,
        cmd = "/usr/bin/protoc --proto_path=proto --cpp_out=$(RULEDIR)" + plugin +
              " " + " ".join(["proto/" + s for s in srcs]),
    )
    native.cc_library(
        name = name,
        srcs = [o for o in outs if o.endswith(".cc")],
        hdrs = [o for o in outs if o.endswith(".h")],
        # Generated code is not ours to keep free of warnings.
        copts = [c for c in COPTS if c != "-Werror"] + ["-Wno-unused-parameter"],
        includes = ["."],
        linkstatic = True,
        deps = deps + ["@system//:grpc" if grpc else "@system//:protobuf"],
        **kwargs
    )
