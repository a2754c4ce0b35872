#ifndef OPTRAIL_BASE_STATUS_MACROS_H_
#define OPTRAIL_BASE_STATUS_MACROS_H_

// Early returns for absl::Status and absl::StatusOr, which Abseil 20220623
// lacks.
//
//   OPTRAIL_RETURN_IF_ERROR(file.Sync());
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define OPTRAIL_STATUS_CONCAT_INNER_(a, b) a##b
#define OPTRAIL_STATUS_CONCAT_(a, b) OPTRAIL_STATUS_CONCAT_INNER_(a, b)

#define OPTRAIL_RETURN_IF_ERROR(expr)                                   \
  do {                                                                  \
    if (absl::Status optrail_status_ = (expr); !optrail_status_.ok()) { \
      return optrail_status_;                                           \
    }                                                                   \
  } while (false)

// A type that holds a comma needs parentheses or an alias.
#define OPTRAIL_ASSIGN_OR_RETURN(lhs, expr) \
  OPTRAIL_ASSIGN_OR_RETURN_IMPL_(           \
      OPTRAIL_STATUS_CONCAT_(optrail_status_or_, __LINE__), lhs, expr)
#define OPTRAIL_ASSIGN_OR_RETURN_IMPL_(status_or, lhs, expr) \
  auto status_or = (expr);                                   \
  if (!status_or.ok()) return std::move(status_or).status(); \
  lhs = std::move(status_or).value()

#endif  // OPTRAIL_BASE_STATUS_MACROS_H_
