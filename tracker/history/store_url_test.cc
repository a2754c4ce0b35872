#include "tracker/history/store_url.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

TEST(StoreUrlTest, ShowsWhatHasNoPasswordAsItIs) {
  for (const char* text :
       {"", ".optrail/history", "C:/x@y", "postgresql://h/d",
        "postgresql://me@h:5432/d?sslmode=verify-full",
        "postgresql://h1:5432,h2:5433/d", "postgresql://me@[::1]:5432/d",
        "postgresql://h:5432/d?user=me@there", "postgresql://h/d@x",
        "postgres://me@/d?host=/var/run&port=5433", "postgresql:///d",
        "https://alice@bitbucket.org/a/b.git", "git@github.com:a/b.git",
        "ssh://git@github.com/a/b.git"}) {
    EXPECT_EQ(ShownUrl(text), text);
    EXPECT_TRUE(CheckStoreUrl(text).ok()) << text;
  }
}

TEST(StoreUrlTest, HidesPasswordsAndTokens) {
  EXPECT_EQ(ShownUrl("postgresql://me:secret@h/d?sslpassword=secret&port=1&"
                     "password=secret"),
            "postgresql://me@h/d?sslpassword=...&port=1&password=...");
  // libpq decodes keywords, and ends a password at the @.
  EXPECT_EQ(ShownUrl("postgresql://me:s?cret@h/d?p%61ssword=secret&"
                     "passwor%64=%&port=1%"),
            "postgresql://me@h/d?p%61ssword=...&passwor%64=...&port=1%");
  EXPECT_EQ(ShownUrl("--history=postgresql://me:secret@h/d"),
            "--history=postgresql://me@h/d");
  EXPECT_EQ(ShownUrl("https://me:secret@github.com/a/b.git"),
            "https://me@github.com/a/b.git");
  EXPECT_EQ(ShownUrl("https://ghp_0123456789012345678901@github.com/a/b.git"),
            "https://...@github.com/a/b.git");
}

// Each character that should have been escaped, at each place of a password.
TEST(StoreUrlTest, HidesPasswordsThatAreNotEscaped) {
  const std::string secret = "SECRET";
  for (const char* odd : {"/", "@", "?", ":", "%", "#", "&", "=", "//", "@/",
                          "/@", "?/", "/?", "[", ",", "?x=", "/?x=", " "}) {
    for (size_t at = 0; at <= secret.size(); ++at) {
      const std::string password =
          absl::StrCat(secret.substr(0, at), odd, secret.substr(at));
      for (const char* end : {"h/d", "h:5432/d?sslmode=require", "h", "/d",
                              "h/d?user=a@b&options=x"}) {
        const std::string url =
            absl::StrCat("postgresql://me:", password, "@", end);
        const std::string shown = ShownUrl(url);
        const std::string checked(CheckStoreUrl(url).message());
        for (const std::string& text : {shown, checked}) {
          EXPECT_FALSE(absl::StrContains(text, secret.substr(0, at)) && at > 0)
              << url << " as " << text;
          EXPECT_FALSE(absl::StrContains(text, secret.substr(at)) &&
                       at < secret.size())
              << url << " as " << text;
        }
      }
    }
  }
}

TEST(StoreUrlTest, RefusesWhatLibpqWouldReadOtherwise) {
  for (const char* url :
       {"postgresql://me:a/b@h/d", "postgresql://me:a@b@h/d",
        "postgresql://me:secret/d", "postgresql://me:100%@h/d",
        "postgresql://me:%zz@h/d", "postgresql://me:%00@h/d",
        "postgresql://h:5432/d@x", "postgresql://me:12/SECRET?x=y@h/d",
        "postgresql://h/d?password=SEC&RET",
        "postgresql://me@h/d?password=SEC&R=T"}) {
    const absl::Status status = CheckStoreUrl(url);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << url << status;
    EXPECT_THAT(status.message(), HasSubstr("next: put the password into"));
  }
  EXPECT_EQ(ShownUrl("postgresql://me:secret/d"), "postgresql://me:...");
  EXPECT_EQ(ShownUrl("postgresql://me:12/SECRET?x=y@h/d"),
            "postgresql://me@h/d");
  EXPECT_EQ(ShownUrl("postgresql://h/d?port=1&password=SEC&RET&user=me&R=T"),
            "postgresql://h/d?port=1&password=...&...&user=me&...");
  EXPECT_TRUE(CheckStoreUrl("postgresql://me:a%2Fb%40c%25?@h/d").ok());
}

}  // namespace
}  // namespace optrail::tracker
