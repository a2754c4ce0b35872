#include "lib/store.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "lib/observer.h"
#include "lib/threads.h"
#include "ops/core/attributes.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "tuning/lookup.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/tuned_text.h"

namespace optrail::lib {
namespace {

constexpr uint32_t kKnownFlags = OPTRAIL_EXACT_ONLY;

absl::string_view Text(const char* text) {
  return text == nullptr ? absl::string_view() : absl::string_view(text);
}

// Two questions with equal keys have one answer.
struct Key {
  absl::string_view op, shape, device, backend, cache_mode;
  int32_t threads;
  uint32_t flags;

  std::array<absl::string_view, 5> texts() const {
    return {op, shape, device, backend, cache_mode};
  }
  template <typename H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine(std::move(h), key.op, key.shape, key.device, key.backend,
                      key.cache_mode, key.threads, key.flags);
  }
};

Key KeyOf(const optrail_problem& problem) {
  return {Text(problem.op),      Text(problem.shape),      Text(problem.device),
          Text(problem.backend), Text(problem.cache_mode), problem.threads,
          problem.flags};
}

// What `store show` demands of OPERATOR/HARDWARE.textproto in a store. Files of
// other layouts are a service's own.
absl::Status CheckPlace(const std::string& folder,
                        const tuning::TunedFile& file) {
  const std::string parent = DirectoryOf(file.path);
  const std::string op(FileNameOf(parent));
  if (JoinPath(folder, op, FileNameOf(file.path)) != file.path ||
      ops::Registry::Get().Find(op) == nullptr) {
    return absl::OkStatus();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const proto::TunedConfigs configs,
                           tuning::ParseTunedConfigs(file.text, file.path));
  return tuning::CheckPlace(configs, op, file.path);
}

// The operator is not part of this library: a service's own.
absl::StatusOr<Choice> ChooseForUnknown(const Problem& problem,
                                        const tuning::TunedConfigStore& store) {
  const ops::KernelQuestion& question = problem.question;
  bool known = false;
  for (const proto::TunedConfigs& configs : store.Contents()) {
    known = known || configs.operator_name() == question.operator_name;
  }
  if (!known) {
    return ops::Registry::Get().UnknownOperator(question.operator_name);
  }
  tuning::LookupRequest request;
  request.operator_name = question.operator_name;
  request.shape = &question.shape;
  request.threads = question.threads;
  request.cache_mode = question.cache_mode;
  request.hardware_id = problem.hardware.id();
  request.device_kind = question.device_kind;
  request.backend = question.backend;
  const tuning::LookupResult found = store.Lookup(request);
  return ChoiceOf(found.config == nullptr ? "" : found.tuned->config(), found,
                  problem.hardware);
}

}  // namespace

optrail_choice Choice::View() const {
  optrail_choice view = OPTRAIL_CHOICE_INIT;
  view.source = source;
  view.unverified = unverified ? 1 : 0;
  view.config = config.c_str();
  view.hardware_id = hardware_id.c_str();
  view.warning = warning.c_str();
  view.shape_distance = shape_distance;
  return view;
}

std::string WhyNotExact(absl::string_view warning) {
  return absl::StrCat(absl::StripSuffix(warning, "; the default is used"),
                      "; nothing else is taken: OPTRAIL_EXACT_ONLY");
}

Choice ChoiceOf(const std::string& config, const tuning::LookupResult& found,
                const proto::Hardware& hardware) {
  Choice choice;
  choice.config = config;
  choice.warning = found.warning;
  if (found.source == tuning::LookupSource::kDefault) return choice;
  choice.source =
      found.source == tuning::LookupSource::kExact    ? OPTRAIL_TUNED_EXACTLY
      : found.source == tuning::LookupSource::kBucket ? OPTRAIL_TUNED_FOR_BUCKET
      : found.hardware_id == hardware.id() ? OPTRAIL_TUNED_FOR_OTHER_SHAPE
                                           : OPTRAIL_TUNED_ON_OTHER_HARDWARE;
  choice.unverified = found.unverified;
  choice.hardware_id = std::string(found.hardware_id);
  choice.shape_distance = found.shape_distance;
  return choice;
}

absl::StatusOr<Problem> ParseProblem(const optrail_problem& given) {
  Problem problem;
  ops::KernelQuestion& question = problem.question;
  if (Text(given.op).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "problem->op is empty, expected an operator: ", optrail_operators()));
  }
  question.operator_name = given.op;
  if (Text(given.shape).empty()) {
    return absl::InvalidArgumentError(
        "problem->shape is empty, expected one like \"m=512,n=512,k=64/f32\"");
  }
  OPTRAIL_ASSIGN_OR_RETURN(question.shape, tuning::ParseShape(given.shape));
  OPTRAIL_ASSIGN_OR_RETURN(
      question.device_kind,
      tuning::ParseDevice(given.device == nullptr ? "cpu" : given.device));
  question.backend = std::string(Text(given.backend));
  if (!question.backend.empty() && !tuning::IsBackendName(question.backend)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "problem->backend is \"", question.backend,
        "\", expected [a-z][a-z0-9_]*, neither best nor all, or NULL"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      question.cache_mode,
      tuning::ParseCacheMode(given.cache_mode == nullptr ? "hot"
                                                         : given.cache_mode));
  question.threads = given.threads == 0 ? 1 : given.threads;
  if (question.threads < 1 || question.threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem->threads is ", given.threads, ", expected 1 to ",
                     kMostThreads, ", or 0 for 1"));
  }
  if ((given.flags & ~kKnownFlags) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem->flags is ", given.flags,
                     ", of which this library knows ", kKnownFlags));
  }
  problem.exact_only = (given.flags & OPTRAIL_EXACT_ONLY) != 0;
  OPTRAIL_ASSIGN_OR_RETURN(problem.hardware,
                           ops::HardwareOf(question.device_kind));
  return problem;
}

tuning::ObservedSource SourceOf(optrail_source source) {
  switch (source) {
    case OPTRAIL_TUNED_EXACTLY:
      return tuning::ObservedSource::kExact;
    case OPTRAIL_TUNED_FOR_OTHER_SHAPE:
      return tuning::ObservedSource::kOtherShape;
    case OPTRAIL_TUNED_ON_OTHER_HARDWARE:
      return tuning::ObservedSource::kOtherHardware;
    case OPTRAIL_CALLERS_CONFIG:
      return tuning::ObservedSource::kCallersConfig;
    case OPTRAIL_TUNED_FOR_BUCKET:
      return tuning::ObservedSource::kBucket;
    case OPTRAIL_DEFAULT_CONFIG:
      break;
  }
  return tuning::ObservedSource::kDefault;
}

tuning::ObservedKey ObservedKeyOf(const Problem& problem,
                                  tuning::ObservedSource source) {
  const ops::KernelQuestion& question = problem.question;
  proto::Shape shape = question.shape;
  const ops::OperatorEntry* const entry =
      ops::Registry::Get().Find(question.operator_name);
  if (entry != nullptr) {
    if (auto normal = ops::NormaliseAttributes(*entry->op, shape);
        normal.ok()) {
      shape = *std::move(normal);
    }
  }
  tuning::ObservedKey key;
  key.op = question.operator_name;
  key.shape = tuning::CanonicalText(shape);
  key.device = tuning::DeviceName(question.device_kind);
  key.backend = question.backend;
  key.cache_mode = tuning::CacheModeName(question.cache_mode);
  key.hardware_id = problem.hardware.id();
  key.threads = question.threads;
  key.source = source;
  return key;
}

// A question that is asked again reads three cache lines: the first one here,
// the text and the view.
struct alignas(64) Store::Answer {
  Answer(const Key& key, uint64_t hash, Choice made)
      : hash(hash),
        threads(key.threads),
        flags(key.flags),
        text(absl::StrJoin(key.texts(), absl::string_view("", 1))),
        choice(std::move(made)),
        view(choice.View()) {}

  bool Has(const Key& key) const {
    const char* at = text.data();
    const char* const end = at + text.size();
    for (const absl::string_view part : key.texts()) {
      // Not memcmp(): of no bytes at null, its masked load takes 24 ns.
      if (!absl::StartsWith({at, static_cast<size_t>(end - at)}, part)) {
        return false;
      }
      at += part.size();
      if (at != end && *at++ != '\0') return false;
    }
    return at == end && threads == key.threads && flags == key.flags;
  }

  Answer* next = nullptr;
  LazyCounter counter;
  const uint64_t hash;
  const int32_t threads;
  const uint32_t flags;
  const std::string text;  // of the key, with zeros between
  const Choice choice;
  alignas(64) const optrail_choice view;
};

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path) {
  tuning::StoreOptions options;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    for (const ops::EmbeddedFile& file : entry->tuned) {
      options.checked_in.push_back({file.path, file.contents});
    }
  }
  if (!path.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(std::vector<tuning::TunedFile> files,
                             tuning::ReadTunedFiles({path}));
    for (tuning::TunedFile& file : files) {
      OPTRAIL_RETURN_IF_ERROR(CheckPlace(path, file));
      options.checked_in.push_back(std::move(file));
    }
  }
  OPTRAIL_ASSIGN_OR_RETURN(tuning::TunedConfigStore configs,
                           tuning::TunedConfigStore::Load(options));
  return std::unique_ptr<Store>(new Store(std::move(configs)));
}

const std::string& Store::digest() const {
  std::call_once(digest_once_, [this] {
    std::string text;
    for (proto::TunedConfigs& file : configs_.Contents()) {
      absl::StrAppend(&text, tuning::FormatTunedConfigs(std::move(file)));
    }
    digest_ = Fingerprint(text);
  });
  return digest_;
}

Store::~Store() {
  for (std::atomic<Answer*>& first : answers_) {
    for (Answer* answer = first.load(); answer != nullptr;) {
      delete std::exchange(answer, answer->next);
    }
  }
}

absl::StatusOr<Choice> Store::Choose(const optrail_problem& given) const {
  OPTRAIL_ASSIGN_OR_RETURN(const Problem problem, ParseProblem(given));
  Choice choice;
  if (ops::Registry::Get().Find(problem.question.operator_name) == nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(choice, ChooseForUnknown(problem, configs_));
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(
        const ops::ChosenKernel kernel,
        ops::ChooseKernel(problem.question, problem.hardware, &configs_));
    choice = ChoiceOf(tuning::CanonicalText(kernel.config), kernel.found,
                      problem.hardware);
  }
  return choice;
}

namespace {

// For a problem that was understood.
tuning::ObservedKey KeyToCount(const optrail_problem& problem,
                               tuning::ObservedSource source) {
  const absl::StatusOr<Problem> parsed = ParseProblem(problem);
  return parsed.ok() ? ObservedKeyOf(*parsed, source) : tuning::ObservedKey();
}

void Count(const optrail_problem& problem, tuning::ObservedSource source) {
  if (const Observer* const observer = Observer::Get()) {
    observer->file().CounterOf(KeyToCount(problem, source))->AddLookup();
  }
}

}  // namespace

absl::StatusOr<const optrail_choice*> Store::Find(
    const optrail_problem& problem) const {
  const Key key = KeyOf(problem);
  const uint64_t hash = absl::HashOf(key);
  std::atomic<Answer*>& first = answers_[hash % kBuckets];
  Answer* known = first.load(std::memory_order_acquire);
  for (const Answer* answer = known; answer != nullptr; answer = answer->next) {
    if (answer->hash != hash || !answer->Has(key)) continue;
    if (const Observer* const observer = Observer::Get()) {
      answer->counter
          .Of(*observer,
              [&] {
                return KeyToCount(problem, SourceOf(answer->choice.source));
              })
          ->AddLookup();
    }
    return &answer->view;
  }
  OPTRAIL_ASSIGN_OR_RETURN(Choice choice, Choose(problem));
  if ((problem.flags & OPTRAIL_EXACT_ONLY) != 0 &&
      choice.source != OPTRAIL_TUNED_EXACTLY) {
    Count(problem, tuning::ObservedSource::kRefused);
    return absl::NotFoundError(WhyNotExact(choice.warning));
  }
  Count(problem, SourceOf(choice.source));
  if (answer_count_.fetch_add(1, std::memory_order_relaxed) >= kMostAnswers) {
    answer_count_.fetch_sub(1, std::memory_order_relaxed);
    thread_local Choice last;
    thread_local optrail_choice view;
    last = std::move(choice);
    view = last.View();
    return &view;
  }
  // Two threads that ask at the same time add two equal answers.
  auto* const answer = new Answer(key, hash, std::move(choice));
  answer->next = known;
  while (!first.compare_exchange_weak(answer->next, answer,
                                      std::memory_order_acq_rel)) {
  }
  return &answer->view;
}

}  // namespace optrail::lib
