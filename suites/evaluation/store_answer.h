#ifndef OPTRAIL_SUITES_EVALUATION_STORE_ANSWER_H_
#define OPTRAIL_SUITES_EVALUATION_STORE_ANSWER_H_

// AnswerOf looks a task up; ShareOfBest compares that answer with the best that
// a session finds for the task itself.

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "suites/tune/tune_buckets.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

struct StoreAnswer {
  absl::optional<proto::Config> config;  // nullopt: the default
  std::string how = "default";           // or exact, bucket, nearest
};

// The answer that a program gets from a store that is this folder alone.
absl::StatusOr<StoreAnswer> AnswerOf(const std::string& store_folder,
                                     const proto::Task& task,
                                     const proto::Hardware& hardware);

// The time of the best config that is found over that of the answer. The
// sessions are kept where `command` keeps them.
absl::StatusOr<double> ShareOfBest(const TuneBucketsCommand& command,
                                   const TaskEntry& task,
                                   const StoreAnswer& answer);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_EVALUATION_STORE_ANSWER_H_
