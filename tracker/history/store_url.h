#ifndef OPTRAIL_TRACKER_HISTORY_STORE_URL_H_
#define OPTRAIL_TRACKER_HISTORY_STORE_URL_H_

// URLs of histories and repositories as they may be shown: messages, reports
// and logs are read by more people than a password is for.
//
//   ShownUrl("postgresql://me:secret@h/d");   // "postgresql://me@h/d"
//   ShownUrl(".optrail/history");             // the same
//   OPTRAIL_RETURN_IF_ERROR(CheckStoreUrl(url));
//
// A URL is read as libpq reads it. Where a character of the password should
// have been escaped, more than the password is hidden, and less only where
// nobody can know: "postgresql://me:12/SECRET?user=y@h/d" is the database
// SECRET of the host `me`, and "?password=a&user=SECRET" a user's name. No
// errors but those of CheckStoreUrl(). Thread-safe.
//
// Source:
// https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace optrail::tracker {

// `text`, a URL or what stands before one as in "--history=URL", without its
// password, the values of its parameters that are passwords, and what stands
// for a user but is as long as a token.
std::string ShownUrl(absl::string_view text);

// InvalidArgument for a URL whose password has characters that should have been
// escaped: libpq's own message would show a part of it.
absl::Status CheckStoreUrl(absl::string_view url);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_STORE_URL_H_
