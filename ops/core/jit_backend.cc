#include "ops/core/jit_backend.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "ops/core/cpu_device.h"
#include "ops/core/instruction_mix.h"
#include "ops/core/jit.h"
#include "ops/core/loaded_library.h"

namespace optrail::ops {
namespace {

constexpr char kEntryPoint[] = "optrail_jit_kernel";
constexpr char kHeader[] = "jit.h";

// No -ffast-math: beside what it does to NaN, it switches denormals off for the
// whole process that loads the code.
const char* const kOptions[] = {"-std=c++17",
                                "-O3",
                                "-fPIC",
                                "-shared",
                                "-w",
                                "-fno-math-errno",
                                "-fvisibility=hidden",
                                "-ffp-contract=fast"};

std::vector<std::string> WithOptions(const std::string& compiler,
                                     std::vector<std::string> more) {
  std::vector<std::string> argv = {compiler};
  argv.insert(argv.end(), std::begin(kOptions), std::end(kOptions));
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

// A folder of its own, removed with everything in it.
class ScratchFolder {
 public:
  static absl::StatusOr<std::unique_ptr<ScratchFolder>> Make() {
    const char* const tmp = getenv("TMPDIR");
    std::string pattern =
        JoinPath(tmp != nullptr ? tmp : "/tmp", "optrail-jit-XXXXXX");
    if (mkdtemp(pattern.data()) == nullptr) {
      return absl::UnavailableError(absl::StrCat(
          "cannot make a folder ", pattern, ": ", std::strerror(errno)));
    }
    return std::unique_ptr<ScratchFolder>(new ScratchFolder(pattern));
  }
  ~ScratchFolder() {
    if (const auto names = ListDirectory(path_); names.ok()) {
      for (const std::string& name : *names) {
        unlink(JoinPath(path_, name).c_str());
      }
    }
    rmdir(path_.c_str());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

  absl::Status Write(const EmbeddedFile& file) const {
    return WriteFileAtomically(JoinPath(path_, BaseName(file.path)),
                               file.contents);
  }

  static std::string BaseName(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
  }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

struct Compiler {
  std::string program;
  std::string version;               // first line of --version
  std::vector<std::string> machine;  // what -march=native stands for here
};

// Options of the real compiler that name a machine, from what the driver would
// run. Cache sizes are hints that differ between equal machines; they stay.
std::vector<std::string> MachineOptions(const std::string& dry_run) {
  std::vector<std::string> options;
  for (const absl::string_view line : absl::StrSplit(dry_run, '\n')) {
    if (!absl::StrContains(line, "cc1") && !absl::StrContains(line, "-cc1")) {
      continue;
    }
    std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    for (size_t i = 0; i < words.size(); ++i) {
      std::string& word = words[i];
      word =
          std::string(absl::StripPrefix(absl::StripSuffix(word, "\""), "\""));
      if (absl::StartsWith(word, "-m") || absl::StartsWith(word, "l1-cache") ||
          absl::StartsWith(word, "l2-cache")) {
        options.push_back(word);
      } else if (word == "-target-cpu" || word == "-target-feature") {
        if (i + 1 < words.size()) options.push_back(words[i + 1]);
      }
    }
  }
  return options;
}

absl::StatusOr<Compiler> FindCompiler() {
  std::vector<std::string> candidates = {"c++", "g++", "clang++"};
  if (const char* const chosen = getenv("OPTRAIL_CXX"); chosen != nullptr) {
    candidates = {chosen};
  }
  CommandOptions options;
  options.timeout = absl::Seconds(20);
  // What a driver says goes into keys: not in the user's language.
  options.environment = {{"LC_ALL", "C"}};
  for (const std::string& program : candidates) {
    const auto version = RunCommand({program, "--version"}, options);
    if (!version.ok() || !version->exit.ok()) continue;
    const auto dry_run = RunCommand(
        {program, "-march=native", "-###", "-E", "-x", "c++", "/dev/null"},
        options);
    if (!dry_run.ok() || !dry_run->exit.ok()) continue;
    Compiler found;
    found.program = program;
    found.version = std::string(
        version->stdout_text.substr(0, version->stdout_text.find('\n')));
    found.machine = MachineOptions(dry_run->stderr_text);
    return found;
  }
  return absl::UnavailableError(
      absl::StrCat("unsupported here: no C++ compiler; looked for ",
                   absl::StrJoin(candidates, ", ")));
}

// Once per process.
const absl::StatusOr<Compiler>& TheCompiler() {
  static const auto* const compiler =
      new absl::StatusOr<Compiler>(FindCompiler());
  return *compiler;
}

std::string MacroName(absl::string_view knob) {
  return absl::StrCat("OPTRAIL_", absl::AsciiStrToUpper(knob));
}

std::vector<std::string> AttributeOptions(const proto::Shape& shape) {
  std::vector<std::string> options;
  for (const proto::Attribute& attribute : shape.attributes()) {
    const std::string name = absl::AsciiStrToUpper(attribute.name());
    options.push_back(
        attribute.has_variant()
            ? absl::StrCat("-DOPTRAIL_ATTR_", name, "_",
                           absl::AsciiStrToUpper(attribute.variant()), "=1")
            : absl::StrCat("-DOPTRAIL_ATTR_", name, "=", attribute.int_()));
  }
  return options;
}

std::vector<std::string> KnobOptions(const proto::Config& config) {
  std::vector<std::string> options;
  for (const proto::KnobValue& value : config.set()) {
    const std::string macro = MacroName(value.knob());
    if (value.has_int_()) {
      options.push_back(absl::StrCat("-D", macro, "=", value.int_()));
    } else if (value.has_bool_()) {
      options.push_back(absl::StrCat("-D", macro, "=", value.bool_() ? 1 : 0));
    } else {
      options.push_back(absl::StrCat(
          "-D", macro, "_", absl::AsciiStrToUpper(value.variant()), "=1"));
    }
  }
  return options;
}

// Facts of the main loop, where there is a disassembler.
void AddLoopFacts(CommandOptions command, Artifact* artifact) {
  command.environment = {{"LC_ALL", "C"}};
  command.max_stdout_bytes = int64_t{16} << 20;
  const auto text =
      RunCommand({"objdump", "-d", "--no-show-raw-insn", "kernel.so"}, command);
  if (!text.ok() || !text->exit.ok()) return;
  for (const auto& [name, count] : LoopFacts(text->stdout_text)) {
    artifact->facts[name] = count;
  }
}

class JitInvocation : public Invocation {
 public:
  JitInvocation(std::unique_ptr<LoadedLibrary> library,
                OptrailJitKernel* kernel, const proto::Shape& shape,
                int threads)
      : library_(std::move(library)), kernel_(kernel), threads_(threads) {
    for (const proto::Dim& dim : shape.dims()) dims_.push_back(dim.value());
  }

  absl::Status Run(const Call& call) const override {
    OptrailJitCall jit;
    jit.operands = call.operands.data();
    jit.dims = dims_.data();
    jit.threads = threads_;
    jit.context = const_cast<Call*>(&call);
    jit.parallel_for = [](void* context, int64_t count,
                          void (*body)(void*, int64_t), void* data) {
      static_cast<const Call*>(context)->ParallelFor(
          count, [&](int64_t i) { body(data, i); });
    };
    kernel_(jit);
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<LoadedLibrary> library_;
  OptrailJitKernel* const kernel_;
  const int threads_;
  std::vector<int64_t> dims_;
};

class JitBackend : public BackendFor<CpuDevice> {
 public:
  explicit JitBackend(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }
  bool compiles() const override { return true; }

  absl::StatusOr<std::string> Id(const Target& target) const override {
    // All that a recipe has but the config: the text with its headers, too.
    const absl::StatusOr<Recipe>& base = Base();
    if (!base.ok()) return base.status();
    return Fingerprint(absl::StrCat(files().sources_hash, " ", base->Key()));
  }

  absl::StatusOr<Recipe> Describe(
      const CompileRequest& request) const override {
    const absl::StatusOr<Recipe>& base = Base();
    if (!base.ok()) return base.status();
    Recipe recipe = *base;
    for (std::string& option : KnobOptions(request.config)) {
      recipe.options.push_back(std::move(option));
    }
    for (std::string& option : AttributeOptions(request.shape)) {
      recipe.options.push_back(std::move(option));
    }
    return recipe;
  }

  absl::StatusOr<Artifact> Compile(const Recipe& recipe) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Compiler compiler, TheCompiler());
    OPTRAIL_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::Make());
    for (const EmbeddedFile& source : files().sources) {
      OPTRAIL_RETURN_IF_ERROR(folder->Write(source));
    }
    std::vector<std::string> options = {"-march=native", "-include", kHeader};
    // The knobs, and whatever an experiment has added to the recipe.
    OPTRAIL_ASSIGN_OR_RETURN(const Recipe base, Base());
    for (size_t i = base.options.size(); i < recipe.options.size(); ++i) {
      if (recipe.options[i] != kLoopFactsOption) {
        options.push_back(recipe.options[i]);
      }
    }
    options.insert(options.end(), {MainSource(), "-o", "kernel.so", "-lm"});
    CommandOptions command;
    command.working_directory = folder->path();
    command.max_stderr_bytes = 4000;
    // Beyond the deadlines of those who wait: a bound for compilers that hang.
    command.timeout = absl::Minutes(10);
    OPTRAIL_ASSIGN_OR_RETURN(
        const CommandResult result,
        RunCommand(WithOptions(compiler.program, options), command));
    if (!result.exit.ok()) {
      return absl::InternalError(absl::StrCat(compiler.program, " ",
                                              result.exit.ToString(), ": ",
                                              result.stderr_text));
    }
    Artifact artifact;
    artifact.key = recipe.Key();
    artifact.log = result.stderr_text;
    OPTRAIL_ASSIGN_OR_RETURN(artifact.bytes,
                             ReadFile(JoinPath(folder->path(), "kernel.so")));
    artifact.facts["object_bytes"] =
        static_cast<int64_t>(artifact.bytes.size());
    if (std::find(recipe.options.begin(), recipe.options.end(),
                  kLoopFactsOption) != recipe.options.end()) {
      AddLoopFacts(command, &artifact);
    }
    return artifact;
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<LoadedLibrary> library,
                             LoadedLibrary::Load(artifact.bytes));
    auto* const kernel =
        reinterpret_cast<OptrailJitKernel*>(library->Symbol(kEntryPoint));
    if (kernel == nullptr) {
      return absl::InternalError(
          absl::StrCat(MainSource(), " defines no OPTRAIL_JIT_KERNEL"));
    }
    return std::make_unique<JitInvocation>(std::move(library), kernel, shape,
                                           device.threads());
  }

 private:
  std::string MainSource() const {
    for (const EmbeddedFile& source : files().sources) {
      if (absl::EndsWith(source.path, ".jit.cc")) {
        return ScratchFolder::BaseName(source.path);
      }
    }
    return "";
  }

  // The recipe without knobs, once per process: asks the compiler what it is
  // and for the text with all that it includes. Macros stay macros, so that one
  // text stands for all configs.
  const absl::StatusOr<Recipe>& Base() const {
    if (!base_.has_value()) base_ = MakeBase();
    return *base_;
  }

  absl::StatusOr<Recipe> MakeBase() const {
    const absl::StatusOr<Compiler>& compiler = TheCompiler();
    if (!compiler.ok()) return compiler.status();
    OPTRAIL_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::Make());
    for (const EmbeddedFile& source : files().sources) {
      OPTRAIL_RETURN_IF_ERROR(folder->Write(source));
    }
    CommandOptions command;
    command.working_directory = folder->path();
    command.timeout = absl::Seconds(60);
    OPTRAIL_ASSIGN_OR_RETURN(
        const CommandResult text,
        RunCommand({compiler->program, "-std=c++17", "-O3", "-march=native",
                    "-E", "-dD", "-P", "-include", kHeader, MainSource()},
                   command));
    if (!text.exit.ok()) {
      return absl::InternalError(absl::StrCat(compiler->program, " ",
                                              text.exit.ToString(), ": ",
                                              text.stderr_text));
    }
    Recipe recipe;
    recipe.compiler = compiler->version;
    recipe.options.assign(std::begin(kOptions), std::end(kOptions));
    recipe.options.insert(recipe.options.end(), compiler->machine.begin(),
                          compiler->machine.end());
    recipe.sources = {{MainSource(), text.stdout_text}};
    return recipe;
  }

  const std::string name_;
  // Not thread-safe, as workers and drivers have no use for that.
  mutable absl::optional<absl::StatusOr<Recipe>> base_;
};

}  // namespace

std::shared_ptr<Backend> MakeJitBackend(std::string name) {
  return std::make_shared<JitBackend>(std::move(name));
}

}  // namespace optrail::ops
