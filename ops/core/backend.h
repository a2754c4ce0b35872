#ifndef OPTRAIL_OPS_CORE_BACKEND_H_
#define OPTRAIL_OPS_CORE_BACKEND_H_

// A Backend is one way to compute an operator on one kind of device: our own
// kernel, a library, code that is generated and compiled when asked. All of
// them are measured by the same stopwatch and checked by the same reference.
//
//   OPTRAIL_ASSIGN_OR_RETURN(Recipe recipe, backend.Describe(request));
//   absl::StatusOr<Artifact> artifact = cache.Get(recipe.Key());
//   if (!artifact.ok()) artifact = backend.Compile(recipe);
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<const Invocation> invocation,
//                            backend.Load(*artifact, shape, config, device));
//
//   kind             Describe               Compile             Load
//   template         index                  nothing             table entry
//   C++ at run time  text, options          a shared object     dlopen
//   NVRTC            source, defines        cubin and facts     module
//   library          index, version         nothing             plan, primitive
//
// Describe is cheap and pure and runs anywhere. Compile is pure, too: it needs
// no device, runs ahead of measurement in a process with a deadline and a
// memory cap, and its result is kept on disk under the recipe's key
// (compile_cache.h). Load runs beside the device, outside the deadlines of
// measurements; a library's own compiler belongs there.
//
// A backend of an existing operator is one file, which the `operator` macro
// finds by its name: docs/guide/add_operator.md, "Another backend".

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"

namespace optrail::tuning {
class ConfigSource;  // tuning/session/config_source.h
}  // namespace optrail::tuning

namespace optrail::ops {

// A file that the macro embedded: its path in the workspace and its contents.
struct EmbeddedFile {
  std::string path;
  std::string contents;
};

// The device to compile for. Its hardware may be a recorded one.
struct Target {
  proto::DeviceKind kind = proto::DEVICE_KIND_UNSPECIFIED;
  std::string isa;  // "native" or what the kind's compilers call theirs
  proto::Hardware hardware;
};

struct CompileRequest {
  const proto::Shape& shape;
  const proto::Config& config;
  const Target& target;
};

// All that decides the bytes of an artifact, found out without compiling.
struct Recipe {
  std::string compiler;               // name and version as found at run time
  std::vector<std::string> options;   // in order
  std::vector<EmbeddedFile> sources;  // headers too
  // The number of a build-time template or of a library's algorithm.
  int index = -1;

  // Whether Compile() does anything that is worth keeping.
  bool NeedsCompiler() const { return !sources.empty(); }

  // Hash of the canonical text of all of the above, in 32 hexadecimal digits:
  // the name in the cache.
  std::string Key() const;
};

struct Artifact {
  std::string key;    // of the recipe; empty where nothing was compiled
  std::string bytes;  // a shared object, a cubin
  std::string log;    // what the compiler said
  // Registers, spills, code size, ...: what is known before a call is made.
  std::map<std::string, int64_t> facts;
};

// The files of a backend that the macro found.
struct BackendFiles {
  EmbeddedFile space;                 // empty path: none
  std::vector<EmbeddedFile> sources;  // embedded, for a compiler at run time
  // A hash of code, options and manual version (kernel_sources.h).
  std::string sources_hash;
  std::string compiler;  // that built this binary
};

class Backend {
 public:
  virtual ~Backend() = default;

  // [a-z][a-z0-9_]*, other than "best" and "all". The device kind's own backend
  // has the kind's name, which is never stored.
  virtual std::string name() const = 0;
  virtual proto::DeviceKind kind() const = 0;

  // Returns the id that readings and tuned configs are valid for. Unavailable
  // says what is missing on this machine: the outcome UNSUPPORTED. It may start
  // a compiler to ask for its version, and is worth keeping.
  virtual absl::StatusOr<std::string> Id(const Target& target) const = 0;

  // "OpenBLAS 0.3.21", where a library does the work.
  virtual std::string library() const { return ""; }

  // Whether its kernels are compiled when they are asked for. Describe() may
  // then start the compiler, too, to ask for its version.
  virtual bool compiles() const { return false; }

  // Those of the operator's combinations of data types that it computes; empty:
  // the first that the operator lists, and no other (Computes in registry.h).
  virtual std::vector<std::vector<proto::DataType>> data_types() const {
    return {};
  }

  // nullptr: there is nothing to choose, and one config.
  const EmbeddedFile* space() const {
    return files_.space.path.empty() ? nullptr : &files_.space;
  }

  // Configs that no space can list, beside those of space(); nullptr: none.
  virtual absl::StatusOr<std::shared_ptr<const tuning::ConfigSource>> Configs(
      const proto::Shape& shape, int threads) const {
    return nullptr;
  }

  // InvalidArgument for a config that the backend does not take.
  virtual absl::StatusOr<Recipe> Describe(
      const CompileRequest& request) const = 0;

  // Internal with the compiler's words: COMPILE_ERROR. Never called for a
  // recipe that does not need it, which makes an empty artifact.
  virtual absl::StatusOr<Artifact> Compile(const Recipe& recipe) const {
    return Artifact();
  }

  // `config` has a value for every knob of the space and satisfies its
  // constraints. Errors become outcomes: InvalidArgument INVALID, Unimplemented
  // and Unavailable UNSUPPORTED, ResourceExhausted OUT_OF_MEMORY, Internal
  // COMPILE_ERROR. What the invocation uses of the device, such as its modules,
  // the device keeps: it must outlive the invocation.
  virtual absl::StatusOr<std::unique_ptr<Invocation>> Load(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, Device& device) const = 0;

  // Sizes of the blocks into which a config cuts a dimension, by the
  // dimension's name, several for one that is cut more than once. Tests go
  // below, to and above each of them. Empty: not known; then every integer of
  // the config is tried with every dimension.
  virtual std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const {
    return {};
  }

  // Set by the registry, before main.
  void SetFiles(BackendFiles files) { files_ = std::move(files); }

 protected:
  const BackendFiles& files() const { return files_; }

 private:
  BackendFiles files_;
};

// A backend of one kind of device, which is given that instead of a Device.
//
//   class SoftmaxNew : public BackendFor<CpuDevice> { ... };
template <class SomeDevice, class Base = Backend>
class BackendFor : public Base {
 public:
  proto::DeviceKind kind() const final { return SomeDevice::kKind; }

  absl::StatusOr<std::unique_ptr<Invocation>> Load(const Artifact& artifact,
                                                   const proto::Shape& shape,
                                                   const proto::Config& config,
                                                   Device& device) const final {
    auto* const own = dynamic_cast<SomeDevice*>(&device);
    if (own == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          this->name(), " needs a device of kind ", SomeDevice::kKindName));
    }
    return LoadOn(artifact, shape, config, *own);
  }

 protected:
  // Does the work of Load().
  virtual absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, SomeDevice& device) const = 0;
};

// Whether `name` may name a backend.
bool IsBackendName(absl::string_view name);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_BACKEND_H_
