#include "tracker/notify/xml.h"

#include "absl/strings/str_replace.h"
#include "base/text/utf8.h"

namespace optrail::tracker {

std::string EscapeForXml(absl::string_view text) {
  return absl::StrReplaceAll(EscapeForTerminal(text),
                             {{"&", "&amp;"},
                              {"<", "&lt;"},
                              {">", "&gt;"},
                              {"\"", "&quot;"},
                              // The two of Unicode's code points that XML 1.0
                              // leaves out beside controls.
                              {"\xef\xbf\xbe", "\\ufffe"},
                              {"\xef\xbf\xbf", "\\uffff"}});
}

}  // namespace optrail::tracker
