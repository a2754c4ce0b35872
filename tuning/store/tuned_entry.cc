#include "tuning/store/tuned_entry.h"

#include "absl/strings/str_cat.h"
#include "base/text/textproto.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

template <typename Entry>
std::string Describe(const Entry& entry) {
  const EntryKey key = EntryKeyOf(entry);
  std::string text = absl::StrCat(entry.shape(), ", threads ", entry.threads(),
                                  ", ", CacheModeName(entry.cache_mode()));
  const std::string& backend = std::get<3>(key);
  if (!backend.empty()) absl::StrAppend(&text, ", ", backend);
  if (entry.launch_mode() != proto::LAUNCH_MODE_UNSPECIFIED) {
    absl::StrAppend(&text, ", ", LaunchModeName(entry.launch_mode()));
  }
  if (!entry.objective().empty()) {
    absl::StrAppend(&text, ", for ", entry.objective());
  }
  if (entry.devices() > 1) {
    absl::StrAppend(&text, ", ", entry.devices(), " devices");
  }
  return text;
}

}  // namespace

EntryKey EntryKeyOf(const proto::TunedConfig& tuned) {
  return {tuned.shape(),   tuned.threads(),     tuned.cache_mode(),
          tuned.backend(), tuned.launch_mode(), tuned.objective(),
          tuned.devices()};
}

EntryKey EntryKeyOf(const proto::BestBackend& best) {
  return {best.shape(),       best.threads(),   best.cache_mode(), "",
          best.launch_mode(), best.objective(), best.devices()};
}

std::string EntryText(const proto::TunedConfig& tuned) {
  return Describe(tuned);
}

std::string EntryText(const proto::BestBackend& best) { return Describe(best); }

bool DefaultStayed(const proto::TunedConfig& tuned) {
  return tuned.ties() || (tuned.time_ns() > 0 && !tuned.proof().claimed() &&
                          tuned.time_ns() == tuned.default_time_ns());
}

void ShortenEntry(proto::TunedConfig* tuned) {
  if (!tuned->has_proof()) return;
  proto::Proof& proof = *tuned->mutable_proof();
  if (DefaultStayed(*tuned) && !tuned->session_id().empty()) {
    tuned->set_ties(true);
    if (proof.has_gain_high()) tuned->set_gain_at_most(proof.gain_high());
    tuned->clear_proof();
    tuned->clear_default_time_ns();
    tuned->clear_processes();
    tuned->clear_samples();
    tuned->clear_commit();
    tuned->clear_date();
    return;
  }
  proof.clear_candidate_measurements();
  proof.clear_default_measurements();
  // store.proto states both.
  if (proof.metric() == "time" && tuned->objective().empty()) {
    proof.clear_metric();
  }
  if (proof.confidence() == 0.95) proof.clear_confidence();
  if (!proof.has_candidate()) return;
  const std::string candidate = CanonicalText(proof.candidate());
  if (candidate != tuned->config()) tuned->set_candidate(candidate);
  proof.clear_candidate();
}

bool Same(const proto::TunedConfig& a, const proto::TunedConfig& b) {
  return PrintTextProto(a) == PrintTextProto(b);
}
bool Same(const proto::BestBackend& a, const proto::BestBackend& b) {
  return PrintTextProto(a) == PrintTextProto(b);
}

double SpeedUpOverDefault(const proto::TunedConfig& tuned) {
  if (tuned.ties()) return 1;
  return tuned.time_ns() > 0 ? tuned.default_time_ns() / tuned.time_ns() : 0;
}

}  // namespace optrail::tuning
