#include "graph/input/input_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "graph/reference/npz.h"
#include "graph/reference/reference.h"

namespace optrail::graph {
namespace {

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

bool IsBetweenValues(char c) { return c == ',' || absl::ascii_isspace(c); }

// The next value of `text`, which is removed; "" behind the last one.
absl::string_view NextValue(absl::string_view& text) {
  size_t begin = 0;
  while (begin < text.size() && IsBetweenValues(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && !IsBetweenValues(text[end])) ++end;
  const absl::string_view value = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return value;
}

template <class Number>
bool ParseAll(absl::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end;
}

// A text file with a line for each sample.
class LinesSource : public InputSource {
 public:
  LinesSource(std::string path, std::vector<SampleInput> inputs)
      : path_(std::move(path)), inputs_(std::move(inputs)) {}
  ~LinesSource() override {
    if (fd_ >= 0) close(fd_);
  }

  // Finds where the samples are; the file itself stays on the disk.
  absl::Status Open() {
    fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return FileError("opening", path_, errno);
    constexpr size_t kBlock = size_t{1} << 20;
    std::string block(kBlock, '\0');
    Line line;
    int64_t at = 0;
    bool is_blank = true, is_comment = false;
    const auto end_line = [&] {
      line.bytes = at - line.begin;
      if (!is_blank && !is_comment) lines_.push_back(line);
      is_blank = true;
      is_comment = false;
    };
    int64_t number = 1;
    line.number = number;
    while (true) {
      const ssize_t got = pread(fd_, block.data(), kBlock, at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError("reading", path_, errno);
      if (got == 0) break;
      for (ssize_t i = 0; i < got; ++i, ++at) {
        const char c = block[i];
        if (c == '\n') {
          end_line();
          line.begin = at + 1;
          line.number = ++number;
          continue;
        }
        is_comment = is_comment || (is_blank && c == '#');
        is_blank = is_blank && absl::ascii_isspace(c);
      }
    }
    end_line();
    return absl::OkStatus();
  }

  int64_t samples() const override {
    return static_cast<int64_t>(lines_.size());
  }

  absl::StatusOr<std::vector<std::string>> Read(int64_t first,
                                                int64_t count) const override {
    // One read covers the samples and all between them.
    const int64_t begin = lines_[first].begin;
    const Line& last = lines_[first + count - 1];
    std::string bytes(last.begin + last.bytes - begin, '\0');
    size_t got = 0;
    while (got < bytes.size()) {
      const ssize_t n = pread(fd_, bytes.data() + got, bytes.size() - got,
                              begin + static_cast<int64_t>(got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return FileError("reading", path_, errno);
      if (n == 0) {
        return absl::DataLossError(
            absl::StrCat(path_, ": became shorter while it was read"));
      }
      got += static_cast<size_t>(n);
    }
    std::vector<std::string> texts;
    for (int64_t s = first; s < first + count; ++s) {
      texts.push_back(bytes.substr(lines_[s].begin - begin, lines_[s].bytes));
    }
    return texts;
  }

  absl::Status Parse(int64_t sample, absl::string_view text,
                     absl::Span<char* const> to) const override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Array array = Array::Zeros(inputs_[i].type);
      for (int64_t e = 0; e < array.elements(); ++e) {
        const absl::string_view value = NextValue(text);
        // One value that is not finite makes a whole batch's result so.
        if (array.is_real() ? !ParseAll(value, array.reals[e]) ||
                                  !std::isfinite(array.reals[e])
                            : !ParseAll(value, array.integers[e])) {
          return absl::InvalidArgumentError(
              absl::StrCat(path_, ":", lines_[sample].number, ": value ", e,
                           " of input ", Quoted(inputs_[i].name), " is ",
                           value.empty() ? "missing" : Quoted(value),
                           "; expected ", array.elements(),
                           array.is_real() ? " finite numbers" : " integers"));
        }
      }
      const absl::Status indices = CheckIndices(array, inputs_[i].index_bound);
      if (!indices.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(path_, ":", lines_[sample].number, ": input ",
                         Quoted(inputs_[i].name), ": ", indices.message()));
      }
      const std::string bytes = array.Encode();
      std::memcpy(to[i], bytes.data(), bytes.size());
    }
    const absl::string_view more = NextValue(text);
    if (more.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ":", lines_[sample].number, ": ", Quoted(more),
                     " comes after the last value of a sample"));
  }

 private:
  struct Line {
    int64_t begin = 0, bytes = 0, number = 0;
  };

  const std::string path_;
  const std::vector<SampleInput> inputs_;
  int fd_ = -1;
  std::vector<Line> lines_;
};

// A folder with a .npz file for each sample.
class FilesSource : public InputSource {
 public:
  FilesSource(std::vector<std::string> paths, std::vector<SampleInput> inputs)
      : paths_(std::move(paths)), inputs_(std::move(inputs)) {}

  int64_t samples() const override {
    return static_cast<int64_t>(paths_.size());
  }

  absl::StatusOr<std::vector<std::string>> Read(int64_t first,
                                                int64_t count) const override {
    std::vector<std::string> texts;
    for (int64_t s = first; s < first + count; ++s) {
      OPTRAIL_ASSIGN_OR_RETURN(texts.emplace_back(), ReadFile(paths_[s]));
    }
    return texts;
  }

  absl::Status Parse(int64_t sample, absl::string_view text,
                     absl::Span<char* const> to) const override {
    const absl::StatusOr<NamedArrays> arrays = ParseNpz(text);
    const auto wrong = [&](absl::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat(paths_[sample], ": ", why));
    };
    if (!arrays.ok()) return wrong(arrays.status().message());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const SampleInput& input = inputs_[i];
      const auto found = arrays->find(input.name);
      if (found == arrays->end()) {
        return wrong(absl::StrCat("has no array ", Quoted(input.name)));
      }
      TensorType as_batch = input.type;
      as_batch.dims.insert(as_batch.dims.begin(), 1);
      const TensorType& type = found->second.type;
      if (!(type == input.type) && !(type == as_batch)) {
        return wrong(absl::StrCat("array ", Quoted(input.name), " is ",
                                  TypeText(type), "; expected ",
                                  TypeText(input.type)));
      }
      const std::vector<double>& reals = found->second.reals;
      for (size_t e = 0; e < reals.size(); ++e) {
        if (std::isfinite(reals[e])) continue;
        return wrong(absl::StrCat("value ", e, " of array ", Quoted(input.name),
                                  " is ", reals[e],
                                  "; expected finite numbers"));
      }
      const absl::Status indices =
          CheckIndices(found->second, input.index_bound);
      if (!indices.ok()) {
        return wrong(absl::StrCat("array ", Quoted(input.name), ": ",
                                  indices.message()));
      }
      const std::string bytes = found->second.Encode();
      std::memcpy(to[i], bytes.data(), bytes.size());
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string> paths_;
  const std::vector<SampleInput> inputs_;
};

class SlowerSource : public InputSource {
 public:
  SlowerSource(const InputSource& source, absl::Duration latency)
      : source_(source), latency_(latency) {}

  int64_t samples() const override { return source_.samples(); }
  absl::StatusOr<std::vector<std::string>> Read(int64_t first,
                                                int64_t count) const override {
    absl::SleepFor(latency_);
    return source_.Read(first, count);
  }
  absl::Status Parse(int64_t sample, absl::string_view text,
                     absl::Span<char* const> to) const override {
    return source_.Parse(sample, text, to);
  }

 private:
  const InputSource& source_;
  const absl::Duration latency_;
};

}  // namespace

absl::StatusOr<int64_t> BatchOf(const Graph& graph) {
  int64_t batch = 0;
  for (const int input : graph.inputs) {
    const Dims& dims = graph.type(input).dims;
    const std::string name = Quoted(graph.values[input].name);
    if (dims.empty() || dims[0] == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", name, " is ", TypeText(graph.type(input)),
                       "; expected a first dimension, the batch"));
    }
    if (batch != 0 && dims[0] != batch) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", name, " is ", TypeText(graph.type(input)),
                       "; expected a first dimension of ", batch,
                       ", the batch of the inputs before it"));
    }
    batch = dims[0];
  }
  if (batch == 0) {
    return absl::InvalidArgumentError("the model has no inputs to load");
  }
  return batch;
}

absl::StatusOr<std::vector<SampleInput>> SampleInputs(const Graph& graph) {
  OPTRAIL_RETURN_IF_ERROR(BatchOf(graph).status());
  const std::vector<int64_t> bounds = IndexBounds(graph);
  std::vector<SampleInput> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    TensorType type = graph.type(graph.inputs[i]);
    type.dims.erase(type.dims.begin());
    inputs.push_back(
        {graph.values[graph.inputs[i]].name, std::move(type), bounds[i]});
  }
  return inputs;
}

absl::StatusOr<std::unique_ptr<InputSource>> OpenInput(
    const std::string& path, std::vector<SampleInput> inputs) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return FileError("opening", path, errno);
  }
  std::unique_ptr<InputSource> source;
  if (S_ISDIR(status.st_mode)) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             ListDirectory(path));
    std::vector<std::string> paths;
    for (const std::string& name : names) {
      if (absl::EndsWith(name, ".npz")) paths.push_back(JoinPath(path, name));
    }
    source = std::make_unique<FilesSource>(std::move(paths), std::move(inputs));
  } else if (S_ISREG(status.st_mode)) {
    auto lines = std::make_unique<LinesSource>(path, std::move(inputs));
    OPTRAIL_RETURN_IF_ERROR(lines->Open());
    source = std::move(lines);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is neither a file nor a folder; expected one with samples"));
  }
  if (source->samples() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": has no samples; expected a line for each, or a folder with a "
        ".npz file for each"));
  }
  return source;
}

std::unique_ptr<InputSource> WithReadLatency(const InputSource& source,
                                             absl::Duration latency) {
  return std::make_unique<SlowerSource>(source, latency);
}

}  // namespace optrail::graph
