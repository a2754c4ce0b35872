"""The C++ targets of a folder: `library`, `test` and `binary`.

    load("//base:cc.bzl", "library")

    library(
        name = "stop_rules",
        test_deps = ["//base/testing:temp_dir"],
        deps = ["//tuning/proto:config_cc_proto"],
    )

is stop_rules.h, stop_rules.cc and, if there is a stop_rules_test.cc, the test
stop_rules_test with the library, the library's deps and `test_deps`. Files
that are not named after the target are listed, as everywhere:
`srcs = ["stop_rules.cc", "patience.cc"]`.

All targets may include the headers of Abseil listed below, tests those of
GoogleTest and GoogleMock as well: nobody lists them. They are shared libraries
of the system, which every program of ours needs anyway; one that must not need
them takes cc_binary (lib/BUILD).

Tests are of Bazel's size medium, five minutes at the most, unless `size` or
`test_size` says otherwise: most take a second, but not on a busy machine.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

_EVERYWHERE = [
    "@com_google_absl//absl/status",
    "@com_google_absl//absl/status:statusor",
    "@com_google_absl//absl/strings",
    "@com_google_absl//absl/strings:str_format",
    "@com_google_absl//absl/time",
    "@com_google_absl//absl/types:optional",
    "@com_google_absl//absl/types:span",
]

_GTEST_MAIN = "@com_google_googletest//:gtest_main"

def _there(file):
    return native.glob([file], allow_empty = True)

def library(name, srcs = None, hdrs = None, deps = [], **kwargs):
    """A library, and the test beside it if there is one.

    Args:
      name: the target, and its files where `srcs` and `hdrs` are absent
      srcs: absent: name.cc, if it exists
      hdrs: absent: name.h, if it exists
      deps: what the library needs, and what its test may use as well
      **kwargs: attributes of cc_library; `test_data`, `test_deps`, `test_size`
          and any other that begins with `test_` are those of the test, which
          has none of the library's: a library with `tags = ["manual"]` or
          `target_compatible_with` needs `test_tags` or
          `test_target_compatible_with`, too
    """
    test_kwargs = {key[5:]: value for key, value in kwargs.items() if key.startswith("test_")}
    cc_library(
        name = name,
        srcs = _there(name + ".cc") if srcs == None else srcs,
        hdrs = _there(name + ".h") if hdrs == None else hdrs,
        deps = deps + _EVERYWHERE,
        **{key: value for key, value in kwargs.items() if not key.startswith("test_")}
    )
    if _there(name + "_test.cc"):
        test(
            name = name + "_test",
            deps = [":" + name] + deps + test_kwargs.pop("deps", []),
            **test_kwargs
        )
    elif test_kwargs:
        fail("%s has test_%s, but there is no %s_test.cc" % (name, test_kwargs.keys()[0], name))

def test(name, srcs = None, deps = [], size = "medium", **kwargs):
    """A GoogleTest, or a test with a main() of its own, which is then the one linked.

    Args:
      name: the target, and its file where `srcs` is absent
      srcs: absent: name.cc
      deps: what it needs besides GoogleTest and Abseil
      size: Bazel's, which says how long it may take
      **kwargs: other attributes of cc_test
    """
    cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = deps + _EVERYWHERE + [_GTEST_MAIN],
        **kwargs
    )

def binary(name, srcs = None, deps = [], **kwargs):
    """A program.

    Args:
      name: the target, and its file where `srcs` is absent
      srcs: absent: name.cc, if it exists
      deps: what it needs besides Abseil
      **kwargs: other attributes of cc_binary
    """
    cc_binary(
        name = name,
        srcs = _there(name + ".cc") if srcs == None else srcs,
        deps = deps + _EVERYWHERE,
        **kwargs
    )
