#ifndef OPTRAIL_OPS_CORE_KERNEL_SOURCES_H_
#define OPTRAIL_OPS_CORE_KERNEL_SOURCES_H_

// The part of a kernel's id that the build knows: a hash of the code that its
// machine code is made from. The files are found, not listed: a walk goes from
// a backend's own files along #include, and from a header to the .cc beside it.
//
//   const Sources sources = {{"ops/sum/sum_cpu.cc", "..."}, ...};
//   absl::StatusOr<std::vector<std::string>> paths =
//       FilesOfKernel(sources, {"ops/sum/sum_cpu.cc"}, is_left_out);
//   const std::string hash =
//       KernelSourcesHash(version, options, CodeOfFiles(sources, *paths));
//
// The hash is of code without comments, whitespace and places: neither a
// sentence that is reworded, nor clang-format, nor a move to another folder
// changes an id. Registry's KernelId() adds the compiler.
//
// What the walk does not see: headers that are generated (a space's knobs among
// them), files that are included by a name that a macro makes, and everything
// that it is told to leave out. `version` in a BUILD file stands for those.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::ops {

// Contents by path in the workspace.
using Sources = std::map<std::string, std::string>;

// The code of a C++ or CUDA source in one canonical form. Tokens remain, and
// the lines of preprocessor directives. Of paths in quotes on such lines the
// last part remains, of an include guard nothing; includes that follow one
// another are sorted.
std::string CodeOf(absl::string_view source);

// The names that a source includes, in its order.
std::vector<std::string> IncludesOf(absl::string_view source);

// The paths of `roots` and of everything in `sources` that they are made from,
// sorted. A name is looked for as a path in the workspace, then beside the file
// that includes it, then as the end of any path: a library may have include
// paths of its own, and embedded files lie in one folder when they are
// compiled.
//
// InvalidArgument, with file and line, for an include below ops/ that is
// neither in `sources` nor left out: no dependency declares it.
absl::StatusOr<std::vector<std::string>> FilesOfKernel(
    const Sources& sources, const std::vector<std::string>& roots,
    const std::function<bool(absl::string_view)>& is_left_out);

// Whether a source is kept in the binary, for a compiler at run time.
bool IsEmbedded(absl::string_view path);

// Returns the part of each file that is hashed: code of C++ and CUDA, contents
// of anything else.
std::vector<std::string> CodeOfFiles(const Sources& sources,
                                     const std::vector<std::string>& paths);

// The order of `code` counts for nothing.
std::string KernelSourcesHash(int version, absl::string_view options,
                              std::vector<std::string> code);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_KERNEL_SOURCES_H_
