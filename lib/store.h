#ifndef OPTRAIL_LIB_STORE_H_
#define OPTRAIL_LIB_STORE_H_

// Tuned configs as a program sees them, and its questions about them.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto store, Store::Open(".optrail/store"));
//   OPTRAIL_ASSIGN_OR_RETURN(const optrail_choice* choice,
//                            store->Find(problem));
//   Use(choice->config);

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/optrail.h"
#include "ops/core/tuned_kernel.h"
#include "tuning/observed/observed_file.h"
#include "tuning/proto/context.pb.h"
#include "tuning/store/store.h"

namespace optrail::lib {

// An optrail_choice with strings of its own.
struct Choice {
  optrail_source source = OPTRAIL_DEFAULT_CONFIG;
  bool unverified = false;
  std::string config, hardware_id, warning;
  double shape_distance = 0;

  // Points into this.
  optrail_choice View() const;
};

// An optrail_problem, checked.
struct Problem {
  ops::KernelQuestion question;
  proto::Hardware hardware;  // of this machine
  bool exact_only = false;
};
absl::StatusOr<Problem> ParseProblem(const optrail_problem& problem);

tuning::ObservedSource SourceOf(optrail_source source);

// What calls of the problem are counted under.
tuning::ObservedKey ObservedKeyOf(const Problem& problem,
                                  tuning::ObservedSource source);

// Why an exact config was refused; the warning of a lookup says what it used in
// its place, and nothing was.
std::string WhyNotExact(absl::string_view warning);

Choice ChoiceOf(const std::string& config, const tuning::LookupResult& found,
                const proto::Hardware& hardware);

class Store {
 public:
  // Implements optrail_store_open(); "": the configs that this library was
  // built with.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const tuning::TunedConfigStore& configs() const { return configs_; }
  // Implements optrail_store_digest(); it is computed on the first call.
  const std::string& digest() const;

  // Implements optrail_lookup(). An answer is found once and kept for the next
  // question, for kMostAnswers problems; then it lives until the thread's next
  // question. Thread-safe and lock-free.
  absl::StatusOr<const optrail_choice*> Find(
      const optrail_problem& problem) const;

  static constexpr int kMostAnswers = 1 << 16;

 private:
  struct Answer;
  static constexpr size_t kBuckets = 1 << 12;

  explicit Store(tuning::TunedConfigStore configs)
      : configs_(std::move(configs)) {}
  absl::StatusOr<Choice> Choose(const optrail_problem& problem) const;

  const tuning::TunedConfigStore configs_;
  mutable std::once_flag digest_once_;
  mutable std::string digest_;
  // Lists of answers, which are only added to.
  mutable std::array<std::atomic<Answer*>, kBuckets> answers_ = {};
  mutable std::atomic<int> answer_count_{0};
};

}  // namespace optrail::lib

#endif  // OPTRAIL_LIB_STORE_H_
