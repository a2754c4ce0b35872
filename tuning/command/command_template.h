#ifndef OPTRAIL_TUNING_COMMAND_COMMAND_TEMPLATE_H_
#define OPTRAIL_TUNING_COMMAND_COMMAND_TEMPLATE_H_

// CommandTemplate is a shell command with places for the values of knobs.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const CommandTemplate command,
//       CommandTemplate::Parse("./train --batch={batch}", {"batch"}));
//   command.Fill({{"batch", "64"}});    // ./train --batch=64
//
// {name} stands for the value of a knob, quoted for the shell where it has to
// be. {{name}} stands for {name} itself, and ${name} stays what it is to the
// shell; so do braces around anything but a name ("awk '{print $1}'"). It does
// not run anything.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tuning {

class CommandTemplate {
 public:
  // InvalidArgument if the text is empty, names a knob that is not in `knobs`,
  // or leaves out one that is: nothing would change with it.
  static absl::StatusOr<CommandTemplate> Parse(
      absl::string_view text, const std::vector<std::string>& knobs);

  // The command with a value for every knob.
  std::string Fill(const std::map<std::string, std::string>& values) const;

  const std::string& text() const { return text_; }

 private:
  // Literal text, then the knob that follows it (empty after the last).
  struct Piece {
    std::string literal;
    std::string knob;
  };

  std::string text_;
  std::vector<Piece> pieces_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_COMMAND_COMMAND_TEMPLATE_H_
