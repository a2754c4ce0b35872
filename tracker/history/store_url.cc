#include "tracker/history/store_url.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace optrail::tracker {
namespace {

using absl::string_view;

// Access tokens of GitHub, GitLab and Bitbucket are as long, names of users
// shorter. Git takes a token without a password.
constexpr size_t kLeastTokenLength = 20;

bool IsEscape(string_view text) {
  return text.size() > 2 && text[0] == '%' && absl::ascii_isxdigit(text[1]) &&
         absl::ascii_isxdigit(text[2]);
}

std::string PercentDecoded(string_view text) {
  std::string decoded;
  while (!text.empty()) {
    const bool is_escape = IsEscape(text);
    absl::StrAppend(&decoded, is_escape
                                  ? absl::HexStringToBytes(text.substr(1, 2))
                                  : std::string(text.substr(0, 1)));
    text.remove_prefix(is_escape ? 3 : 1);
  }
  return decoded;
}

// libpq takes no other escapes, and no NUL.
bool HasBadEscape(string_view text) {
  for (size_t i = text.find('%'); i != string_view::npos;
       i = text.find('%', i + 1)) {
    if (!IsEscape(text.substr(i)) || text.substr(i, 3) == "%00") return true;
  }
  return false;
}

// "key=value" with a key that libpq knows: it refuses others, which may be a
// part of a password.
bool IsParameter(string_view text) {
  static const auto* const kKeys =
      new std::set<std::string>{"application_name",
                                "channel_binding",
                                "client_encoding",
                                "connect_timeout",
                                "dbname",
                                "fallback_application_name",
                                "gssdelegation",
                                "gssencmode",
                                "gsslib",
                                "host",
                                "hostaddr",
                                "keepalives",
                                "keepalives_count",
                                "keepalives_idle",
                                "keepalives_interval",
                                "krbsrvname",
                                "load_balance_hosts",
                                "options",
                                "passfile",
                                "password",
                                "port",
                                "replication",
                                "require_auth",
                                "requirepeer",
                                "requiressl",
                                "service",
                                "ssl",
                                "ssl_max_protocol_version",
                                "ssl_min_protocol_version",
                                "sslcert",
                                "sslcertmode",
                                "sslcompression",
                                "sslcrl",
                                "sslcrldir",
                                "sslkey",
                                "sslmode",
                                "sslnegotiation",
                                "sslpassword",
                                "sslrootcert",
                                "sslsni",
                                "target_session_attrs",
                                "tcp_user_timeout",
                                "user"};
  const size_t equals = text.find('=');
  return equals != string_view::npos &&
         kKeys->count(PercentDecoded(text.substr(0, equals))) > 0;
}

// Parameters alone, unlike a question mark in a password.
bool IsQuery(string_view text) {
  const std::vector<string_view> parameters = absl::StrSplit(text, '&');
  return std::all_of(parameters.begin(), parameters.end(), IsParameter);
}

bool IsPassword(string_view parameter) {
  const size_t equals = parameter.find('=');
  return equals != string_view::npos &&
         absl::EndsWith(PercentDecoded(parameter.substr(0, equals)),
                        "password");
}

// Each of "HOST:PORT,HOST:PORT", with IPv6 addresses in brackets.
bool ArePortsNumbers(string_view hosts) {
  for (string_view host : absl::StrSplit(hosts, ',')) {
    const size_t bracket = host.rfind(']');
    if (bracket != string_view::npos) host.remove_prefix(bracket + 1);
    const size_t colon = host.find(':');
    if (colon == string_view::npos) continue;
    host.remove_prefix(colon + 1);
    if (host.empty() ||
        !std::all_of(host.begin(), host.end(), absl::ascii_isdigit)) {
      return false;
    }
  }
  return true;
}

// Who connects, as the start of what stands behind "://".
struct Credentials {
  size_t size = 0;  // with the @; 0: there are none
  // libpq would see another password, or none.
  bool is_torn = false;
};

Credentials FindCredentials(string_view rest) {
  Credentials found;
  // libpq ends them at the first @, and sees none if a slash comes before it.
  const size_t first = rest.find_first_of("@/");
  if (first != string_view::npos && rest[first] == '@') found.size = first + 1;
  size_t query = rest.find('?', found.size);
  if (query != string_view::npos && !IsQuery(rest.substr(query + 1))) {
    query = string_view::npos;
  }
  const string_view hosts = rest.substr(
      found.size, rest.find_first_of("/?", found.size) - found.size);
  size_t last = rest.substr(0, query).rfind('@');
  const size_t colon = rest.find(':');
  found.is_torn = !ArePortsNumbers(hosts) ||
                  (last != string_view::npos && last >= found.size &&
                   (found.size > 0 || colon < last));
  if (!found.is_torn) return found;
  last = rest.rfind('@');
  if (last != string_view::npos) found.size = std::max(found.size, last + 1);
  return found;
}

// What stands behind the credentials, as it may be shown.
struct Hidden {
  std::string shown;
  // A password that is a parameter has an & that should have been escaped.
  bool is_torn = false;
};

Hidden WithoutPasswordParameters(string_view rest) {
  const size_t question = rest.find('?');
  if (question == string_view::npos) return {std::string(rest)};
  // Passwords may stand here, too: password, sslpassword.
  Hidden hidden;
  bool is_behind_password = false;
  std::vector<std::string> parameters =
      absl::StrSplit(rest.substr(question + 1), '&');
  for (std::string& parameter : parameters) {
    if (IsPassword(parameter)) {
      parameter.replace(parameter.find('=') + 1, std::string::npos, "...");
      is_behind_password = true;
    } else if (is_behind_password && !IsParameter(parameter)) {
      parameter = "...";
      hidden.is_torn = true;
    }
  }
  hidden.shown = absl::StrCat(rest.substr(0, question + 1),
                              absl::StrJoin(parameters, "&"));
  return hidden;
}

}  // namespace

std::string ShownUrl(string_view text) {
  const size_t scheme = text.find("://");
  if (scheme == string_view::npos) return std::string(text);
  const string_view before = text.substr(0, scheme + 3);
  const string_view rest = text.substr(scheme + 3);
  const Credentials credentials = FindCredentials(rest);
  if (credentials.size == 0) {
    // What is no port may be the password of a URL without a host.
    const size_t colon = rest.find(':');
    if (credentials.is_torn && colon != string_view::npos) {
      return absl::StrCat(before, rest.substr(0, colon), ":...");
    }
    return absl::StrCat(before, WithoutPasswordParameters(rest).shown);
  }
  string_view user = rest.substr(0, credentials.size - 1);
  user = user.substr(0, user.find(':'));
  const bool is_git =
      absl::EndsWith(before, "http://") || absl::EndsWith(before, "https://");
  if (is_git && user.size() >= kLeastTokenLength) user = "...";
  return absl::StrCat(
      before, user, "@",
      WithoutPasswordParameters(rest.substr(credentials.size)).shown);
}

absl::Status CheckStoreUrl(string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == string_view::npos) return absl::OkStatus();
  const string_view rest = url.substr(scheme + 3);
  const Credentials credentials = FindCredentials(rest);
  if (!credentials.is_torn && !HasBadEscape(rest) &&
      !WithoutPasswordParameters(rest.substr(credentials.size)).is_torn) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      ShownUrl(url),
      ": expected postgresql://user@host:5432/database, a number for the port, "
      "and no '@', '/', '&' or '%' in a name or password but as %40, %2F, "
      "%26, %25; "
      "next: put the password into ~/.pgpass"));
}

}  // namespace optrail::tracker
