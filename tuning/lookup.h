#ifndef OPTRAIL_TUNING_LOOKUP_H_
#define OPTRAIL_TUNING_LOOKUP_H_

// Lookup answers a service that runs its own kernels: which config was tuned
// for this shape on this hardware? It reads the files of tuned configs that the
// service ships (docs/reference/tuned_configs.md) once, and then only answers.
//
//   ASSIGN_OR_RETURN(const Lookup lookup,
//                    Lookup::Load({"tuned/softmax.textproto"}));
//   Lookup::Question softmax;
//   softmax.operator_name = "softmax";
//   softmax.hardware_id = "amd-epyc-zen4-2c";
//   ASSIGN_OR_RETURN(const Lookup::Prepared asked,
//                    Lookup::Prepare(softmax, "rows=6144,cols=384/f32"));
//   const Lookup::Answer answer = lookup.Find(asked);   // nanoseconds
//   const int64_t tile = answer.Int("cols_tile", 64);   // 64: the default
//
// It knows no operators, runs no kernels, starts no clock, writes nothing and
// never tunes. Whether a config can run here is the service's to say.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/store/store.h"

namespace optrail::tuning {

// Each path is a file of tuned configs, or a folder below which every
// *.textproto is one. NotFound names a path that is not there; InvalidArgument,
// with file, line and column, what is wrong in one. If two entries have the
// same key, the one read later counts.
absl::StatusOr<TunedConfigStore> LoadTunedFiles(
    const std::vector<std::string>& paths);

// The files alone, in the order in which they are read. NotFound as above.
absl::StatusOr<std::vector<TunedFile>> ReadTunedFiles(
    const std::vector<std::string>& paths);

class Lookup {
 public:
  // Makes one of the files that LoadTunedFiles() reads, with its errors.
  static absl::StatusOr<Lookup> Load(const std::vector<std::string>& paths);

  struct Question {
    std::string operator_name;
    // The id that `optrail doctor` prints on the machine. Empty is no hardware:
    // only the nearest there is can be the answer.
    std::string hardware_id;
    std::string device = "cpu";  // "cuda", or the number of another kind
    int threads = 1;
    std::string cache_mode = "hot";  // or "cold"
    std::string kernel_id;           // of the service's own build; "": unknown
    std::string backend;             // "": the device kind's own
    std::string launch_mode;         // "", "stream", "graph"
    std::string objective;           // "": time
    int devices = 1;
  };

  // A question with its shape, checked and parsed once. Cheap to copy.
  class Prepared {
   public:
    const Question& question() const { return data_->question; }

   private:
    friend class Lookup;
    struct Data {
      Question question;
      proto::Shape shape;
      LookupRequest request;  // points into the two above
    };
    explicit Prepared(std::shared_ptr<const Data> data)
        : data_(std::move(data)) {}

    std::shared_ptr<const Data> data_;
  };

  // InvalidArgument names what is wrong in question or shape, such as
  // "m=512,n=512,k=64/f32" or "n=8,c=64/padding=1/f16".
  static absl::StatusOr<Prepared> Prepare(const Question& question,
                                          absl::string_view shape);

  // Points into the Lookup and lives as long as it does.
  struct Answer : LookupResult {
    // The knob's value, or `otherwise`, the kernel's default, if nothing fits
    // or the config has no such knob of this type.
    int64_t Int(absl::string_view knob, int64_t otherwise) const;
    bool Bool(absl::string_view knob, bool otherwise) const;
    absl::string_view Variant(absl::string_view knob,
                              absl::string_view otherwise) const;
  };

  // Exact, else nothing (config is nullptr): the kernel's default. `is_valid`
  // says which configs the service can run: a pure function of shape, config
  // and process; by default all. With `beats_default`, a model of the service's
  // that says whether a config is expected to beat the kernel's default, the
  // nearest shape or hardware may answer, as docs/reference/tuned_configs.md
  // says. All but an exact answer carry a warning. Thread-safe and lock-free.
  Answer Find(const Prepared& question) const;
  Answer Find(const Prepared& question, const ConfigPredicate& is_valid) const;
  Answer Find(const Prepared& question, const ConfigPredicate& is_valid,
              const ConfigPredicate& beats_default) const;

  // Which backend was fastest in one interleaved bench of all of them, as
  // `tune --backend=all` keeps it: TunedConfigStore::FindBest.
  BestResult FindBest(const Prepared& question,
                      const std::map<std::string, std::string>& ids) const {
    return store_.FindBest(question.data_->request, ids);
  }

 private:
  explicit Lookup(TunedConfigStore store) : store_(std::move(store)) {}

  TunedConfigStore store_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_LOOKUP_H_
