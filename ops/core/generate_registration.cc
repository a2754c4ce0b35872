// Generates the source that registers an operator's data files and backends;
// run by the `operator` macro, see ops/operator.bzl for the arguments. Files
// are given as PATH_IN_WORKSPACE=PATH.

#include <fstream>
#include <initializer_list>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/hash.h"
#include "ops/core/kernel_sources.h"

ABSL_FLAG(std::string, name, "", "name of the operator");
ABSL_FLAG(std::string, package, "", "its package");
ABSL_FLAG(int, version, 1, "manual version of its kernels");
ABSL_FLAG(std::string, options, "", "compiler options, one per line");
ABSL_FLAG(std::string, space, "", "space file");
ABSL_FLAG(std::string, shapes, "", "shapes file");
ABSL_FLAG(std::vector<std::string>, headers, {}, "headers of all kernels");
ABSL_FLAG(std::vector<std::string>, backends, {},
          "NAME:FILE for every file of every backend");
ABSL_FLAG(std::string, halide_compiler, "",
          "the compiler of *_halide.cc among the runfiles; empty: no Halide");
ABSL_FLAG(std::string, halide_version, "", "Halide's, where it was found");
ABSL_FLAG(std::string, jit_header, "", "what *.jit.cc files see of Optrail");
ABSL_FLAG(std::vector<std::string>, tuned, {}, "tuned configs");
ABSL_FLAG(bool, test_only, false, "leave the operator out of listings");
ABSL_FLAG(std::string, out, "", "file to write");

namespace optrail::ops {
namespace {

struct File {
  std::string path;  // in the workspace
  std::string contents;
};

File ReadFile(const std::string& argument) {
  const std::pair<std::string, std::string> paths =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  std::ifstream in(paths.second, std::ios::binary);
  if (!in) {
    std::cerr << paths.first << ": cannot read " << paths.second << "\n";
    std::exit(1);
  }
  std::stringstream contents;
  contents << in.rdbuf();
  return {paths.first, contents.str()};
}

// Adjacent literals, one per line: compilers limit the length of one line less
// than that of a string.
std::string Literal(absl::string_view text) {
  std::string literal;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&literal, literal.empty() ? "" : "\\n\"\n", "      \"",
                    absl::CHexEscape(line));
  }
  return literal + "\"";
}

std::string Embedded(const std::string& argument) {
  const File file = ReadFile(argument);
  return absl::StrCat("{\n", Literal(file.path), ",\n", Literal(file.contents),
                      "}");
}

std::string SourcesHash(const std::vector<File>& files) {
  std::vector<std::string> contents;
  for (const File& file : files) contents.push_back(file.contents);
  return KernelSourcesHash(absl::GetFlag(FLAGS_version),
                           absl::GetFlag(FLAGS_options), contents);
}

struct BackendSources {
  std::vector<std::string> hashed;    // whatever decides the machine code
  std::vector<std::string> embedded;  // for a compiler at run time
  std::string space;
  bool jit = false;
  bool halide = false;
  // Its kernels are .cu files, which see no header but those among their own
  // sources: what is for processors alone must not change their id.
  bool cuda = false;
};

bool EndsWithOneOf(absl::string_view argument,
                   std::initializer_list<absl::string_view> suffixes) {
  for (const absl::string_view suffix : suffixes) {
    if (absl::EndsWith(argument, suffix)) return true;
  }
  return false;
}

std::map<std::string, BackendSources> Backends() {
  std::map<std::string, BackendSources> backends;
  for (const std::string& argument : absl::GetFlag(FLAGS_backends)) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits(':', 1));
    BackendSources& backend = backends[parts.first];
    if (absl::EndsWith(parts.second, ".space.textproto")) {
      backend.space = parts.second;
      continue;
    }
    backend.hashed.push_back(parts.second);
    backend.jit |= absl::EndsWith(parts.second, ".jit.cc");
    backend.halide |= absl::EndsWith(parts.second, "_halide.cc");
    backend.cuda |= absl::EndsWith(parts.second, ".cu");
    if (EndsWithOneOf(parts.second,
                      {".jit.cc", ".jit.h", ".cu", ".cuh", "_halide.cc"})) {
      backend.embedded.push_back(parts.second);
    }
  }
  // The device kinds' own kernels share the operator's space, unless they have
  // one of their own.
  for (const char* own : {"cpu", "cuda", "own"}) {
    const auto found = backends.find(own);
    if (found != backends.end() && found->second.space.empty()) {
      found->second.space = absl::GetFlag(FLAGS_space);
    }
  }
  for (auto& [name, backend] : backends) {
    if (!backend.jit) continue;
    backend.hashed.push_back(absl::GetFlag(FLAGS_jit_header));
    backend.embedded.push_back(absl::GetFlag(FLAGS_jit_header));
  }
  return backends;
}

std::vector<File> HashedFiles(const BackendSources& backend) {
  std::vector<std::string> arguments = backend.hashed;
  if (!backend.cuda) {
    const std::vector<std::string> headers = absl::GetFlag(FLAGS_headers);
    arguments.insert(arguments.end(), headers.begin(), headers.end());
  }
  std::vector<File> files;
  for (const std::string& argument : arguments) {
    files.push_back(ReadFile(argument));
  }
  return files;
}

std::string BackendText(const std::string& name,
                        const BackendSources& backend) {
  std::string text = absl::StrCat("  {\n    auto& backend = files.backends[\"",
                                  name, "\"];\n");
  if (!backend.space.empty()) {
    absl::StrAppend(&text, "    backend.space = ", Embedded(backend.space),
                    ";\n");
  }
  for (const std::string& source : backend.embedded) {
    absl::StrAppend(&text, "    backend.sources.push_back(", Embedded(source),
                    ");\n");
  }
  const std::vector<File> files = HashedFiles(backend);
  absl::StrAppend(&text, "    backend.sources_hash = \"", SourcesHash(files),
                  "\";\n    backend.compiler = __VERSION__;\n"
                  "    optrail::ops::AddBuiltFrom(\"",
                  absl::GetFlag(FLAGS_name), "\", \"", name, "\", {\n");
  for (const File& file : files) {
    absl::StrAppend(&text, "        {", Literal(file.path), ", \"",
                    Fingerprint(file.contents), "\"},\n");
  }
  absl::StrAppend(&text, "    });\n  }\n");
  return text;
}

int Main() {
  std::string tuned;
  for (const std::string& argument : absl::GetFlag(FLAGS_tuned)) {
    absl::StrAppend(&tuned, "  files.tuned.push_back(", Embedded(argument),
                    ");\n");
  }
  std::string backends, jit, jit_include, halide_include;
  for (const auto& [name, backend] : Backends()) {
    backends += BackendText(name, backend);
    if (backend.halide) {
      halide_include = "#include \"ops/halide/halide_backend.h\"\n";
      absl::StrAppend(&jit, "  optrail::ops::Registry::Get().AddBackend(\"",
                      absl::GetFlag(FLAGS_name),
                      "\",\n      optrail::ops::MakeHalideBackend(\"", name,
                      "\", \"", absl::GetFlag(FLAGS_name), "\", \"",
                      absl::GetFlag(FLAGS_halide_compiler), "\", \"",
                      absl::GetFlag(FLAGS_halide_version), "\"));\n");
    }
    if (!backend.jit) continue;
    jit_include = "#include \"ops/core/jit_backend.h\"\n";
    absl::StrAppend(&jit, "  optrail::ops::Registry::Get().AddBackend(\"",
                    absl::GetFlag(FLAGS_name),
                    "\",\n      optrail::ops::MakeJitBackend(\"", name,
                    "\"));\n");
  }
  std::ofstream out(absl::GetFlag(FLAGS_out), std::ios::binary);
  out << "// Generated by the `operator` macro from the files named below.\n"
      << jit_include << halide_include
      << "#include \"ops/core/built_from.h\"\n"
         "#include \"ops/core/registry.h\"\n"
         "\n"
         "[[maybe_unused]] static const bool optrail_files_registered = [] {\n"
         "  optrail::ops::Registry::MacroFiles files;\n"
      << "  files.package = \"" << absl::GetFlag(FLAGS_package) << "\";\n"
      << "  files.space = " << Embedded(absl::GetFlag(FLAGS_space)) << ";\n"
      << "  files.shapes = " << Embedded(absl::GetFlag(FLAGS_shapes)) << ";\n"
      << tuned << backends << "  files.test_only = "
      << (absl::GetFlag(FLAGS_test_only) ? "true" : "false") << ";\n"
      << "  optrail::ops::Registry::Get().AddFiles(\""
      << absl::GetFlag(FLAGS_name) << "\", std::move(files));\n"
      << jit
      << "  return true;\n"
         "}();\n";
  out.close();
  if (!out) {
    std::cerr << "cannot write " << absl::GetFlag(FLAGS_out) << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return optrail::ops::Main();
}
