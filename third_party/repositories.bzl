"""Every external repository of Optrail, in one place.

Libraries come from Debian packages (listed in debian_packages.txt, which
bazelw installs), under the labels their upstream projects use, so that a
BUILD file reads the same as one over upstream sources.

A workspace that uses Optrail calls this too:

    load("@optrail//third_party:repositories.bzl", "optrail_dependencies")
    optrail_dependencies()
"""

load("//third_party:debian.bzl", "debian_absl", "debian_halide", "debian_library", "debian_onednn", "debian_protobuf", "debian_rules", "debian_rules_cc")
load("//third_party:npm.bzl", "npm_file")
load("//third_party:stubs.bzl", "remote_coverage_tools_stub")

# buildifier: disable=unnamed-macro
def optrail_dependencies():
    """Declares the repositories that Optrail's BUILD files name."""
    existing = native.existing_rules()

    def_rules = {
        "bazel_skylib": "/usr/share/bazel/tools/skylib",
        "platforms": "/usr/share/bazel/platforms",
        "rules_java": "/usr/share/bazel/rules/java",
        "rules_proto": "/usr/share/bazel/rules/proto",
    }
    for name, path in def_rules.items():
        if name not in existing:
            debian_rules(name = name, path = path)
    if "rules_cc" not in existing:
        debian_rules_cc(name = "rules_cc")
    if "com_google_absl" not in existing:
        debian_absl(name = "com_google_absl")
    if "com_google_protobuf" not in existing:
        debian_protobuf(name = "com_google_protobuf")

    # name: {target: (header that must exist, link options)}
    libraries = {
        "com_google_googletest": {
            "gtest": ("gmock/gmock.h", ["-lgmock", "-lgtest", "-lpthread"]),
            "gtest_main": ("gtest/gtest.h", ["-lgmock_main", "-lgmock", "-lgtest", "-lpthread"]),
        },
        "com_github_google_benchmark": {
            "benchmark": ("benchmark/benchmark.h", ["-lbenchmark", "-lpthread"]),
            "benchmark_main": ("benchmark/benchmark.h", ["-lbenchmark_main", "-lbenchmark", "-lpthread"]),
        },
        "com_googlesource_code_re2": {"re2": ("re2/re2.h", ["-lre2"])},
        "com_github_google_highway": {"hwy": ("hwy/highway.h", ["-lhwy"])},
        "com_github_nlohmann_json": {"json": ("nlohmann/json.hpp", [])},
        "com_github_dmlc_xgboost": {"xgboost": ("xgboost/c_api.h", ["-lxgboost"])},
        "expat": {"expat": ("expat.h", ["-lexpat"])},
        "onnx": {"onnx_proto": ("onnx/onnx-ml.pb.h", ["-lonnx_proto"])},
        "org_sqlite": {"sqlite3": ("sqlite3.h", ["-lsqlite3"])},
        "boost": {"math": ("boost/math/distributions.hpp", [])},
        # Its headers alone: it is loaded when it is asked for.
        "libpq": {"libpq": ("postgresql/libpq-fe.h", [])},
        "liblzma": {"liblzma": ("lzma.h", ["-llzma"])},
        "lemon": {"lemon": ("lemon/network_simplex.h", ["-llemon"])},
        "openssl": {"crypto": ("openssl/evp.h", ["-lcrypto"])},
        "zlib": {"zlib": ("zlib.h", ["-lz"])},
    }
    for name, targets in libraries.items():
        if name not in existing:
            debian_library(
                name = name,
                headers = {target: spec[0] for target, spec in targets.items()},
                linkopts = {target: spec[1] for target, spec in targets.items()},
            )
    if "halide" not in existing:
        debian_halide(name = "halide")
    if "onednn" not in existing:
        debian_onednn(name = "onednn")
    if "echarts" not in existing:
        npm_file(
            name = "echarts",
            package = "echarts",
            files = ["dist/echarts.common.min.js", "dist/echarts.simple.min.js", "LICENSE"],
            sha512 = "a136d54ec5df2ae121c5fb47a8be71a6b80ba1cd24eee49c030b6bc8281617a84f6052d1c0e50788598718204a3f934f14d903568a4e89ec94a98187f056b790",
            version = "5.6.0",
        )
    if "buildifier" not in existing:
        npm_file(
            name = "buildifier",
            package = "@bazel/buildifier",
            files = ["buildifier-linux_amd64", "buildifier-linux_arm64"],
            sha512 = "799fc0abedabe0f7096ba2db3c24fa7df80825f4d4fe062296a233a17d8e2cce273646d00bab5330f64d9fb6871e38463f16cd2efe35ce6e17aadd689422e05f",
            version = "8.2.1",
        )
    if "remote_coverage_tools" not in existing:
        remote_coverage_tools_stub(name = "remote_coverage_tools")
