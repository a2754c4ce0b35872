#include "ops/core/compile_cache.h"

#include <atomic>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::ops {
namespace {

// A line with the lengths of what follows, and that.
std::string Encode(const Artifact& artifact) {
  std::string facts;
  for (const auto& [name, value] : artifact.facts) {
    absl::StrAppend(&facts, name, " ", value, "\n");
  }
  return absl::StrCat(facts.size(), " ", artifact.log.size(), " ",
                      artifact.bytes.size(), "\n", facts, artifact.log,
                      artifact.bytes);
}

absl::StatusOr<Artifact> Decode(const std::string& text) {
  std::istringstream in(text.substr(0, text.find('\n')));
  Artifact artifact;
  size_t facts_size = 0, log_size = 0, bytes_size = 0;
  in >> facts_size >> log_size >> bytes_size;
  size_t at = text.find('\n');
  if (!in || at == std::string::npos ||
      ++at + facts_size + log_size + bytes_size != text.size()) {
    return absl::NotFoundError("an entry of another version");
  }
  std::istringstream facts(text.substr(at, facts_size));
  std::string name;
  int64_t value;
  while (facts >> name >> value) artifact.facts[name] = value;
  at += facts_size;
  artifact.log = text.substr(at, log_size);
  artifact.bytes = text.substr(at + log_size);
  return artifact;
}

}  // namespace

absl::StatusOr<Artifact> CompileCache::Get(absl::string_view key,
                                           absl::Status* refused) const {
  absl::StatusOr<std::string> text = files_.Get(key);
  const bool is_local = text.ok();
  if (!is_local && shared_ != nullptr) {
    text = shared_->Get(key);
    if (!text.ok() && !absl::IsNotFound(text.status())) {
      if (refused != nullptr) *refused = text.status();
      return absl::NotFoundError(text.status().message());
    }
  }
  OPTRAIL_RETURN_IF_ERROR(text.status());
  absl::StatusOr<Artifact> artifact = Decode(*text);
  if (!artifact.ok()) {
    if (!is_local) shared_->Drop(key);
    return artifact.status();
  }
  // Without a folder to keep it, it is fetched again.
  if (!is_local) (void)files_.Put(key, *text);
  artifact->key = std::string(key);
  return artifact;
}

absl::Status CompileCache::Put(const Artifact& artifact) const {
  const std::string text = Encode(artifact);
  const absl::Status kept = files_.Put(artifact.key, text);
  if (shared_ == nullptr) return kept;
  const absl::Status shared = shared_->Put(artifact.key, text);
  return kept.ok() ? shared : kept;
}

absl::StatusOr<Artifact> CompileCached(const Backend& backend,
                                       const CompileRequest& request,
                                       const std::string& folder,
                                       absl::Status* kept,
                                       const std::vector<std::string>& added) {
  OPTRAIL_ASSIGN_OR_RETURN(Recipe recipe, backend.Describe(request));
  if (!recipe.NeedsCompiler() && added.empty()) return Artifact();
  if (!recipe.NeedsCompiler()) {
    return absl::UnimplementedError(
        absl::StrCat("unsupported here: ", backend.name(),
                     " is not compiled when it is requested"));
  }
  recipe.options.insert(recipe.options.end(), added.begin(), added.end());
  if (folder.empty()) return backend.Compile(recipe);
  const CompileCache cache(folder);
  absl::Status refused;
  absl::StatusOr<Artifact> artifact = cache.Get(recipe.Key(), &refused);
  if (artifact.ok()) return artifact;
  OPTRAIL_ASSIGN_OR_RETURN(artifact, backend.Compile(recipe));
  absl::Status put = cache.Put(*artifact);
  // Others' entries stay, and so does the reason: once is enough.
  static std::atomic<bool> told{false};
  if (!refused.ok()) {
    put = told.exchange(true) ? absl::OkStatus() : refused;
  }
  if (kept != nullptr) *kept = put;
  return artifact;
}

absl::StatusOr<Artifact> CachedArtifact(const Backend& backend,
                                        const CompileRequest& request,
                                        const std::string& folder) {
  OPTRAIL_ASSIGN_OR_RETURN(const Recipe recipe, backend.Describe(request));
  if (!recipe.NeedsCompiler()) return Artifact();
  if (!folder.empty()) {
    absl::StatusOr<Artifact> artifact = CompileCache(folder).Get(recipe.Key());
    if (artifact.ok()) return artifact;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "backend ", backend.name(), " needs compiled code, of which ",
      folder.empty() ? "no folder was given"
                     : absl::StrCat(folder, " has none for this config"),
      ", and it may not compile here"));
}

}  // namespace optrail::ops
