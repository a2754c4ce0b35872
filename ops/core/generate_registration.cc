// Generates the source that registers an operator's data files and backends;
// run by the `operator` macro, see ops/operator.bzl. Files are given as
// PATH_IN_WORKSPACE=PATH.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/hash/hash.h"
#include "ops/core/kernel_sources.h"

ABSL_FLAG(std::string, name, "", "name of the operator");
ABSL_FLAG(std::string, package, "", "its package");
ABSL_FLAG(int, version, 1, "manual version of its kernels");
ABSL_FLAG(std::string, options, "", "compiler options, one per line");
ABSL_FLAG(std::string, space, "", "space file");
ABSL_FLAG(std::string, shapes, "", "shapes file");
ABSL_FLAG(std::vector<std::string>, sources, {},
          "files that kernels may be made of: a walk along includes chooses");
ABSL_FLAG(std::vector<std::string>, left_out, {},
          "beginnings of paths that are no part of any id");
ABSL_FLAG(std::vector<std::string>, backends, {},
          "NAME:FILE for every file that a backend has of its own");
ABSL_FLAG(std::vector<std::string>, spaces, {},
          "NAME:FILE for every backend that has a space");
ABSL_FLAG(std::string, made, "",
          "backends that a function makes, NAME|HEADER|FUNCTION|ARGUMENTS, one "
          "per line");
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

std::string Embedded(const File& file) {
  return absl::StrCat("{\n", Literal(file.path), ",\n", Literal(file.contents),
                      "}");
}

std::string Embedded(const std::string& argument) {
  return Embedded(ReadFile(argument));
}

struct DeclaredBackend {
  std::vector<std::string> roots;  // paths of its own files
  std::string space;               // as a flag has it
};

std::map<std::string, DeclaredBackend> Backends(Sources& sources) {
  std::map<std::string, DeclaredBackend> backends;
  for (const std::string& argument : absl::GetFlag(FLAGS_backends)) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits(':', 1));
    File file = ReadFile(parts.second);
    backends[parts.first].roots.push_back(file.path);
    sources[file.path] = std::move(file.contents);
  }
  for (const std::string& argument : absl::GetFlag(FLAGS_spaces)) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits(':', 1));
    backends[parts.first].space = parts.second;
  }
  return backends;
}

bool IsLeftOut(absl::string_view path) {
  const std::vector<std::string> left_out = absl::GetFlag(FLAGS_left_out);
  return std::any_of(left_out.begin(), left_out.end(),
                     [&](const std::string& prefix) {
                       return absl::StartsWith(path, prefix);
                     });
}

absl::StatusOr<std::string> BackendText(const std::string& name,
                                        const DeclaredBackend& backend,
                                        const Sources& sources) {
  const absl::StatusOr<std::vector<std::string>> paths =
      FilesOfKernel(sources, backend.roots, IsLeftOut);
  if (!paths.ok()) return paths.status();
  std::string text = absl::StrCat("  {\n    auto& backend = files.backends[\"",
                                  name, "\"];\n");
  if (!backend.space.empty()) {
    absl::StrAppend(&text, "    backend.space = ", Embedded(backend.space),
                    ";\n");
  }
  for (const std::string& path : *paths) {
    if (!IsEmbedded(path)) continue;
    absl::StrAppend(&text, "    backend.sources.push_back(",
                    Embedded(File{path, sources.at(path)}), ");\n");
  }
  absl::StrAppend(&text, "    backend.sources_hash = \"",
                  KernelSourcesHash(absl::GetFlag(FLAGS_version),
                                    absl::GetFlag(FLAGS_options),
                                    CodeOfFiles(sources, *paths)),
                  "\";\n    backend.compiler = __VERSION__;\n"
                  "    optrail::ops::AddBuiltFrom(\"",
                  absl::GetFlag(FLAGS_name), "\", \"", name, "\", {\n");
  for (const std::string& path : *paths) {
    absl::StrAppend(&text, "        {", Literal(path), ", \"",
                    Fingerprint(sources.at(path)), "\"},\n");
  }
  absl::StrAppend(&text, "    });\n  }\n");
  return text;
}

// Calls of the functions that make backends, and their headers.
void AddMade(std::string* includes, std::string* calls) {
  std::set<std::string> headers;
  for (const absl::string_view line :
       absl::StrSplit(absl::GetFlag(FLAGS_made), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, '|');
    headers.insert(fields.at(1));
    std::vector<std::string> arguments = {fields.at(0)};
    arguments.insert(arguments.end(), fields.begin() + 3, fields.end());
    absl::StrAppend(
        calls, "  optrail::ops::Registry::Get().AddBackend(\"",
        absl::GetFlag(FLAGS_name), "\",\n      ", fields.at(2), "(",
        absl::StrJoin(arguments, ", ",
                      [](std::string* out, const std::string& argument) {
                        absl::StrAppend(out, "\"", absl::CHexEscape(argument),
                                        "\"");
                      }),
        "));\n");
  }
  for (const std::string& header : headers) {
    absl::StrAppend(includes, "#include \"", header, "\"\n");
  }
}

int Main() {
  std::string tuned;
  for (const std::string& argument : absl::GetFlag(FLAGS_tuned)) {
    absl::StrAppend(&tuned, "  files.tuned.push_back(", Embedded(argument),
                    ");\n");
  }
  Sources sources;
  for (const std::string& argument : absl::GetFlag(FLAGS_sources)) {
    File file = ReadFile(argument);
    sources.emplace(std::move(file.path), std::move(file.contents));
  }
  std::string backends, includes, made;
  for (const auto& [name, backend] : Backends(sources)) {
    const absl::StatusOr<std::string> text =
        BackendText(name, backend, sources);
    if (!text.ok()) {
      std::cerr << "operator " << absl::GetFlag(FLAGS_name) << ", backend "
                << name << ": " << text.status().message() << "\n";
      return 1;
    }
    backends += *text;
  }
  AddMade(&includes, &made);
  std::ofstream out(absl::GetFlag(FLAGS_out), std::ios::binary);
  out << "// Generated by the `operator` macro from the files named below.\n"
      << includes
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
      << made
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
