#ifndef OPTRAIL_BASE_TEXT_WRAPPED_STREAM_H_
#define OPTRAIL_BASE_TEXT_WRAPPED_STREAM_H_

// Wraps the sentences that a program writes to a stream, whoever writes them.
//
//   const WrappedStream wrapped(std::cerr, TerminalWidth());
//   std::cerr << "note: " << a_long_sentence << "\n";
//
// A line is written when it ends, by WrapProse. Three things pass as they are:
// a line with columns (two spaces after its first word), a command to a CI
// service ("::" or "##" first), and a line that a terminal redraws (a carriage
// return), at once. Several threads may write.

#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>

namespace optrail {

class WrappedStream : private std::streambuf {
 public:
  // `stream` must outlive this. `width` 0 leaves it alone: it is no terminal.
  WrappedStream(std::ostream& stream, int width);
  WrappedStream(const WrappedStream&) = delete;
  WrappedStream& operator=(const WrappedStream&) = delete;
  // Writes what is left, and gives the stream its buffer back.
  ~WrappedStream() override;

 private:
  int overflow(int character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;

  // Ends the lines that are whole.
  void Write();

  std::ostream& stream_;
  const int width_;
  std::streambuf* const target_;
  std::mutex mutex_;
  std::string line_;  // so far
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_WRAPPED_STREAM_H_
