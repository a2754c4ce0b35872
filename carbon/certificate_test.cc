#include "carbon/certificate.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/random.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "carbon/carbon_command.h"
#include "carbon/certificate_test_fixture.h"
#include "carbon/energy_of.h"
#include "carbon/signature.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::carbon {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(CertificateTest, IsEnergyTimesIntensityAndAShareOfTheHardware) {
  const json certificate = json::parse(Make());
  const json& base = certificate["base"];
  EXPECT_DOUBLE_EQ(base["joules_per_unit"], 1.2);
  EXPECT_DOUBLE_EQ(base["I_gco2e_per_kwh"], 350);
  EXPECT_DOUBLE_EQ(base["E_kwh"], 1.2 / 3.6e6);
  const double embodied = 150'000 * 1.6e-3 / (35040 * 3600.);
  EXPECT_DOUBLE_EQ(base["M_gco2e"], embodied);
  EXPECT_DOUBLE_EQ(base["sci_gco2e_per_unit"], 1.2 / 3.6e6 * 350 + embodied);
  EXPECT_LT(base["sci_low"], base["sci_gco2e_per_unit"]);
  EXPECT_GT(base["sci_high"], base["sci_gco2e_per_unit"]);
  EXPECT_EQ(base["record_sha256"], Sha256Hex(*ReadFile(PathOf(inputs_.base))));
  EXPECT_FALSE(certificate["estimated"]);
  EXPECT_THAT(certificate["base"]["benchmarks"][0]["method"],
              HasSubstr("counter and power agree"));
  EXPECT_GT(certificate["saved_fraction"], .2);
}

TEST_F(CertificateTest, SaysThatACommitIsNotAllThatWasMeasured) {
  const json clean = json::parse(Make());
  EXPECT_FALSE(clean["base"].contains("uncommitted_changes"));
  EXPECT_THAT(*CertificatePage(clean.dump()),
              testing::Not(HasSubstr("changes that the commit lacks")));

  proto::Run run = *history_.ReadRun(inputs_.candidate);
  run.mutable_commit()->set_dirty(true);
  run.set_run_id("20260103T000000Z-000000000003");
  ASSERT_TRUE(history_.AppendRun(run).ok());
  inputs_.candidate = run.run_id();
  const std::string text = Make();
  const json certificate = json::parse(text);
  EXPECT_FALSE(certificate["base"].contains("uncommitted_changes"));
  EXPECT_EQ(certificate["candidate"]["uncommitted_changes"], true);
  EXPECT_THAT(*CertificatePage(text),
              HasSubstr("changes that the commit lacks"));
  EXPECT_TRUE(VerifyCertificate(text, history_, "").ok());
  json silent = certificate;
  silent["candidate"].erase("uncommitted_changes");
  EXPECT_THAT(
      std::string(VerifyCertificate(silent.dump(2), history_, "").message()),
      HasSubstr("/candidate/uncommitted_changes does not follow"));
}

// The bytes of one that is silent about changes, as before format 4.
std::string Silent(json certificate, int format) {
  certificate["format"] = absl::StrCat("optrail-carbon-certificate/", format);
  for (const char* side : {"base", "candidate"}) {
    if (format < 4) certificate[side].erase("uncommitted_changes");
    certificate[side].erase("scatter");
  }
  certificate.erase("saving");
  certificate.erase("made_up");
  certificate.erase("digest");
  certificate["digest"] = Sha256Hex(certificate.dump(2) + "\n");
  return certificate.dump(2) + "\n";
}

TEST_F(CertificateTest, AnEarlierOneOfATreeWithChangesStillVerifies) {
  proto::Run run = *history_.ReadRun(inputs_.candidate);
  run.mutable_commit()->set_dirty(true);
  run.set_run_id("20260103T000000Z-000000000003");
  ASSERT_TRUE(history_.AppendRun(run).ok());
  inputs_.candidate = run.run_id();
  const std::string silent = Silent(json::parse(Make()), 2);
  absl::Status verified = VerifyCertificate(silent, history_, "");
  EXPECT_TRUE(verified.ok()) << verified;
  EXPECT_FALSE(IsOfOlderFormat(silent));
  // It follows as little as ever where a number was changed, and a certificate
  // of today is no earlier one.
  json changed = json::parse(silent);
  changed["candidate"]["joules_per_unit"] = 1;
  verified = VerifyCertificate(Silent(changed, 2), history_, "");
  EXPECT_THAT(std::string(verified.message()),
              HasSubstr("/candidate/joules_per_unit does not follow"));
  EXPECT_TRUE(
      VerifyCertificate(Silent(json::parse(Make()), 4), history_, "").ok());
  changed = json::parse(Make());
  changed["candidate"].erase("uncommitted_changes");
  verified = VerifyCertificate(Silent(changed, 4), history_, "");
  EXPECT_THAT(std::string(verified.message()),
              HasSubstr("/candidate/uncommitted_changes does not follow"));
  verified = VerifyCertificate(Silent(json::parse(Make()), 3), history_, "");
  EXPECT_THAT(std::string(verified.message()),
              HasSubstr("expected \"optrail-carbon-certificate/5\""));
}

TEST_F(CertificateTest, VerifiesFromACopyOfTheHistoryAlone) {
  const std::string certificate = Make();
  EXPECT_TRUE(VerifyCertificate(certificate, history_, "").ok());
  const std::string other = Folder("elsewhere");
  const auto copy = *tracker::History::Open(other);
  ASSERT_TRUE(copy.MergeFrom(history_).ok());
  const absl::Status verified = VerifyCertificate(certificate, copy, "");
  EXPECT_TRUE(verified.ok()) << verified;
}

// Nobody can tell without the runs, but digest and signature speak all the
// same.
TEST_F(CertificateTest, WithoutItsRunsNobodyCanTell) {
  const std::string key = NewKey();
  const std::string certificate = *SignCertificate(Make(), key);
  const auto empty = *tracker::History::Open(Folder("empty"));
  const auto code_of = [&](const std::string& text, const std::string& of) {
    return VerifyCertificate(text, empty, of).code();
  };
  EXPECT_EQ(code_of(certificate, ""), absl::StatusCode::kNotFound);
  EXPECT_EQ(code_of(certificate, key), absl::StatusCode::kNotFound);
  EXPECT_EQ(code_of(certificate, NewKey()), absl::StatusCode::kDataLoss);
  json changed = json::parse(certificate);
  changed["base"]["joules_per_unit"] = 7;
  EXPECT_EQ(code_of(changed.dump(2) + "\n", ""), absl::StatusCode::kDataLoss);
  CarbonVerifyCommand command;
  command.common.history = Folder("other");
  const auto other = *tracker::History::Open(command.common.history);
  ASSERT_TRUE(other.AppendRun(*history_.ReadRun(inputs_.base)).ok());
  command.certificate = JoinPath(dir_, "c.json");
  ASSERT_TRUE(WriteFileAtomically(command.certificate, certificate).ok());
  std::ostringstream out;
  EXPECT_EQ(*RunCarbonVerify(command, out), ExitCode::kNotEnoughData);
  EXPECT_THAT(out.str(), HasSubstr(inputs_.candidate));
}

// A layer of a workload counts once, in the variant that the model would use.
TEST_F(CertificateTest, AWorkloadCountsEachLayerOnce) {
  const auto record = [&](int day, bool tuned, int threads = 1) {
    proto::Run run;
    run.set_started_unix_ns((1767225600 + day * 86400LL) * 1'000'000'000);
    run.set_elapsed_ns(60'000'000'000);
    run.set_run_id(absl::StrCat("2026010", day, "T000000Z-00000000000", day));
    run.set_workload("tiny");
    run.mutable_hardware()->set_id("machine");
    run.mutable_hardware()->set_device_kind(proto::CPU);
    run.mutable_hardware()->set_cores(2);
    for (const auto& [name, way] : {std::make_pair("attention", "fused"),
                                    {"softmax", "separate"},
                                    {"norm", ""},
                                    {"gone", ""}}) {
      proto::WorkloadLayer* layer = run.add_workload_layers();
      layer->set_operator_name(name);
      layer->set_shape("m=2/f32");
      layer->set_count(3);
      layer->set_way(way);
      if (*way != '\0') layer->set_part("heads");
      if (std::string(name) == "gone") continue;
      for (int variant = 0; variant < (tuned ? 2 : 1); ++variant) {
        for (int i = 1; i <= threads; ++i) {
          proto::BenchmarkResult* result = run.add_results();
          proto::BenchmarkKey* key = result->mutable_key();
          key->set_operator_name(name);
          proto::Dim* dim = key->mutable_shape()->add_dims();
          dim->set_name("m");
          dim->set_value(2);
          key->mutable_shape()->add_data_types(proto::F32);
          key->set_threads(i);
          key->set_selection(variant == 0 ? proto::DEFAULT : proto::TUNED);
          result->set_outcome(proto::OK);
          result->add_measurements()->set_median_ns(variant == 0 ? 4e6 : 1e6);
        }
      }
    }
    EXPECT_TRUE(history_.AppendRun(run).ok());
    return run.run_id();
  };
  inputs_.base = record(5, /*tuned=*/false);
  inputs_.candidate = record(6, /*tuned=*/true);
  const std::string certificate = Make();
  const json made = json::parse(certificate);
  EXPECT_EQ(made["functional_unit"], "a run of tiny, 2 of 3 layers");
  EXPECT_EQ(made["base"]["benchmarks"].size(), 2u);
  EXPECT_DOUBLE_EQ(made["base"]["seconds_per_unit"], 2 * 3 * 4e-3);
  EXPECT_DOUBLE_EQ(made["candidate"]["seconds_per_unit"], 2 * 3 * 1e-3);
  EXPECT_EQ(made["base"]["benchmarks"][0]["variant"], "default");
  EXPECT_EQ(made["candidate"]["benchmarks"][0]["variant"], "tuned");
  EXPECT_EQ(made["candidate"]["benchmarks"][0]["layer"], "attention m=2/f32");
  EXPECT_THAT(*LeftOut(inputs_, history_),
              testing::ElementsAre("gone m=2/f32"));
  EXPECT_TRUE(VerifyCertificate(certificate, history_, "").ok());
  EXPECT_THAT(*CertificatePage(certificate),
              HasSubstr(", tuned of the layer norm m=2/f32"));
  EXPECT_TRUE(VerifyCertificate(Silent(made, 3), history_, "").ok());
  json older = made;
  older["format"] = "optrail-carbon-certificate/2";
  EXPECT_TRUE(IsOfOlderFormat(older.dump()));
  EXPECT_THAT(
      std::string(VerifyCertificate(older.dump(), history_, "").message()),
      HasSubstr("an older Optrail wrote it, in format 2"));
  inputs_.candidate = record(7, /*tuned=*/true, /*threads=*/2);
  EXPECT_THAT(
      std::string(MakeCertificate(inputs_, history_).status().message()),
      HasSubstr("has 2 variants of the layer attention m=2/f32"));
}

// Among the tamperings below: OPTRAIL_TEST_SEED=7 draws others.
uint64_t Seed() {
  const char* const text = std::getenv("OPTRAIL_TEST_SEED");
  const uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  std::cout << "seed " << seed << "\n";
  return seed;
}

// Changes of one place of the certificate: any byte, or any value of its JSON.
TEST_F(CertificateTest, AThousandTamperingsOfItAreRefused) {
  const std::string key = NewKey();
  const std::string plain = Make();
  const std::string signed_one = *SignCertificate(plain, key);
  Rng rng(Seed());
  for (int i = 0; i < 500; ++i) {
    std::string changed = i % 2 == 0 ? plain : signed_one;
    const auto at = static_cast<size_t>(
        rng.UniformInt(static_cast<int64_t>(changed.size())));
    switch (rng.UniformInt(3)) {
      case 0:
        changed[at] = static_cast<char>(changed[at] ^ (1 << rng.UniformInt(7)));
        break;
      case 1:
        changed.erase(at, 1);
        break;
      default:
        changed.insert(at, 1, "0123456789 ,}\""[rng.UniformInt(14)]);
    }
    if (changed == plain || changed == signed_one) continue;
    EXPECT_EQ(VerifyCertificate(changed, history_, "").code(),
              absl::StatusCode::kDataLoss)
        << i << "\n"
        << changed;
  }
  const json flat = json::parse(plain).flatten();
  std::vector<std::string> places;
  for (const auto& [place, value] : flat.items()) places.push_back(place);
  for (int i = 0; i < 500; ++i) {
    json changed = json::parse(plain);
    const json::json_pointer place(places[static_cast<size_t>(
        rng.UniformInt(static_cast<int64_t>(places.size())))]);
    json& value = changed[place];
    if (value.is_number()) {
      value = value.get<double>() * (1 + .2 * rng.UniformReal()) + 1e-9;
    } else if (value.is_boolean()) {
      value = !value.get<bool>();
    } else {
      value = value.get<std::string>() + "x";
    }
    EXPECT_EQ(VerifyCertificate(changed.dump(2) + "\n", history_, "").code(),
              absl::StatusCode::kDataLoss)
        << place.to_string();
  }
}

TEST_F(CertificateTest, AThousandTamperingsOfItsRecordsAreRefused) {
  const std::string certificate = Make();
  Rng rng(Seed() + 1);
  for (int i = 0; i < 1000; ++i) {
    const std::string path =
        PathOf(i % 2 == 0 ? inputs_.base : inputs_.candidate);
    const std::string intact = *ReadFile(path);
    std::string changed = intact;
    const auto at = static_cast<size_t>(
        rng.UniformInt(static_cast<int64_t>(changed.size())));
    if (rng.UniformInt(4) == 0) {
      changed.resize(at);
    } else {
      changed[at] = static_cast<char>(changed[at] ^ (1 << rng.UniformInt(8)));
    }
    ASSERT_TRUE(WriteFileAtomically(path, changed).ok());
    EXPECT_EQ(VerifyCertificate(certificate, history_, "").code(),
              absl::StatusCode::kDataLoss)
        << i;
    ASSERT_TRUE(WriteFileAtomically(path, intact).ok());
  }
  EXPECT_TRUE(VerifyCertificate(certificate, history_, "").ok());
}

// One who knows how the digest is made: what is derived still has to follow.
TEST_F(CertificateTest, ANewDigestDoesNotHelpNumbersThatDoNotFollow) {
  for (const char* place :
       {"/candidate/joules_per_unit", "/candidate/sci_gco2e_per_unit",
        "/base/sci_high", "/saved_fraction", "/base/M_gco2e",
        "/candidate/benchmarks/0/joules_per_call",
        "/candidate/benchmarks/0/method", "/base/record_sha256", "/estimated",
        "/functional_unit", "/candidate/commit"}) {
    json changed = json::parse(Make());
    json& value = changed[json::json_pointer(place)];
    value = value.is_number()    ? json(value.get<double>() / 2)
            : value.is_boolean() ? json(!value.get<bool>())
                                 : json("x");
    json bare = changed;
    bare.erase("digest");
    changed["digest"] = Sha256Hex(bare.dump(2) + "\n");
    const absl::Status verified =
        VerifyCertificate(changed.dump(2) + "\n", history_, "");
    EXPECT_THAT(std::string(verified.message()),
                HasSubstr("does not follow from its inputs"))
        << place;
  }
}

TEST_F(CertificateTest, ASignatureIsThatOfItsKeyOrRefused) {
  const std::string key = NewKey(), other = NewKey();
  const std::string plain = Make();
  const std::string by_key = *SignCertificate(plain, key);
  EXPECT_TRUE(VerifyCertificate(by_key, history_, "").ok());
  EXPECT_TRUE(VerifyCertificate(by_key, history_, key).ok());
  EXPECT_THAT(std::string(VerifyCertificate(by_key, history_, other).message()),
              HasSubstr("it was signed by"));
  EXPECT_THAT(std::string(VerifyCertificate(plain, history_, key).message()),
              HasSubstr("it has no signature"));
  // The signature belongs to another certificate.
  json changed = json::parse(by_key);
  inputs_.pue = 1.1;
  changed["signature"] =
      json::parse(*SignCertificate(Make(), key))["signature"];
  EXPECT_FALSE(VerifyCertificate(changed.dump(2) + "\n", history_, "").ok());
  EXPECT_FALSE(SignCertificate(plain, "no key").ok());
  // The same bytes in other letters.
  json shouted = json::parse(by_key);
  shouted["signature"]["value"] =
      absl::AsciiStrToUpper(shouted["signature"]["value"].get<std::string>());
  EXPECT_FALSE(VerifyCertificate(shouted.dump(2) + "\n", history_, "").ok());
}

TEST_F(CertificateTest, WhatWasNotMeteredIsEstimatedOrRefused) {
  inputs_.candidate = Record(3, {1, 1}, /*metered=*/false);
  EXPECT_THAT(
      std::string(MakeCertificate(inputs_, history_).status().message()),
      HasSubstr("was not metered, and the power model does not know"));
  inputs_.model.device_watts = 700;
  const std::string certificate = Make();
  EXPECT_TRUE(json::parse(certificate)["estimated"]);
  EXPECT_THAT(*CertificatePage(certificate), HasSubstr(">estimated<"));
  EXPECT_TRUE(VerifyCertificate(certificate, history_, "").ok());
}

// A failure is not less work, and a power that nothing takes is no input.
TEST_F(CertificateTest, WhatFailedAndWattsThatNothingTakesAreRefused) {
  proto::Run failed = *history_.ReadRun(inputs_.candidate);
  failed.set_run_id("20260107T000000Z-000000000007");
  proto::BenchmarkResult* result = failed.add_results();
  result->mutable_key()->set_operator_name("BM_gone");
  result->set_outcome(proto::CRASHED);
  result->set_detail("signal 11");
  ASSERT_TRUE(history_.AppendRun(failed).ok());
  CertificateInputs inputs = inputs_;
  inputs.candidate = failed.run_id();
  const auto refusal = [&] {
    return std::string(MakeCertificate(inputs, history_).status().message());
  };
  EXPECT_THAT(refusal(), HasSubstr("BM_gone failed"));
  EXPECT_THAT(refusal(), HasSubstr("failed (CRASHED: signal 11)"));
  // RE2 can't say "all but": the filter names what is left.
  EXPECT_THAT(refusal(), HasSubstr("--filter='^(BM_a|BM_b)$'"));
  std::swap(inputs.base, inputs.candidate);
  EXPECT_THAT(refusal(), HasSubstr("failed (CRASHED: signal 11)"));
  inputs = inputs_;
  inputs.model.device_watts = 700;
  EXPECT_THAT(refusal(), HasSubstr("--watts=700 has no effect"));
}

TEST_F(CertificateTest, WhatWasDisturbedDidNotFail) {
  proto::Run disturbed = *history_.ReadRun(inputs_.candidate);
  disturbed.set_run_id("20260107T000000Z-000000000007");
  proto::BenchmarkResult* result = disturbed.add_results();
  result->mutable_key()->set_operator_name("BM_busy");
  result->set_outcome(proto::CONTENDED);
  ASSERT_TRUE(history_.AppendRun(disturbed).ok());
  inputs_.candidate = disturbed.run_id();
  EXPECT_THAT(
      std::string(MakeCertificate(inputs_, history_).status().message()),
      HasSubstr("BM_busy has no certain measurement (CONTENDED)"));
}

TEST_F(CertificateTest, NamesWhatOneRunLacks) {
  proto::Run more = *history_.ReadRun(inputs_.candidate);
  more.set_run_id("20260107T000000Z-000000000007");
  proto::BenchmarkResult* result = more.add_results();
  result->mutable_key()->set_operator_name("BM_new");
  result->set_outcome(proto::OK);
  ASSERT_TRUE(history_.AppendRun(more).ok());
  EXPECT_TRUE(LeftOut(inputs_, history_)->empty());
  inputs_.candidate = more.run_id();
  ASSERT_EQ(LeftOut(inputs_, history_)->size(), 1u);
  EXPECT_THAT(LeftOut(inputs_, history_)->front(), HasSubstr("BM_new"));
}

// One model errs the same way in all that it tells: two benchmarks of it are no
// more certain than one. Readings of processes scatter on their own.
TEST_F(CertificateTest, ErrorsOfOneModelOrMeterDoNotCancel) {
  inputs_.embodied_grams = 0;
  inputs_.intensity_uncertainty = 0;
  const auto width = [&](const char* side) {
    const json sides = json::parse(Make());
    const double sci = sides[side]["sci_gco2e_per_unit"];
    return (sides[side]["sci_high"].get<double>() - sci) / sci;
  };
  const double spread =
      json::parse(Make())["base"]["benchmarks"][0]["uncertainty"];
  EXPECT_NEAR(width("base"), std::hypot(spread, kMeterUncertainty), 1e-9);
  for (const int day : {5, 6}) {
    proto::Run run;
    run.set_started_unix_ns((1767225600 + day * 86400LL) * 1'000'000'000);
    run.set_elapsed_ns(60'000'000'000);
    run.set_run_id(absl::StrCat("2026010", day, "T000000Z-00000000000", day));
    run.mutable_hardware()->set_device_kind(proto::CPU);
    run.mutable_hardware()->set_cores(2);
    for (const char* name : {"BM_A", "BM_B"}) {
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name(name);
      result->set_outcome(proto::OK);
      result->add_measurements()->set_median_ns(1000);
    }
    ASSERT_TRUE(history_.AppendRun(run).ok());
    (day == 5 ? inputs_.base : inputs_.candidate) = run.run_id();
  }
  EXPECT_NEAR(width("base"), kModelUncertainty, 1e-9);
}

TEST_F(CertificateTest, ARefusalIsTextWhateverTheCertificateHolds) {
  CarbonVerifyCommand command;
  command.common.history = dir_;
  command.certificate = JoinPath(dir_, "hostile.json");
  json hostile = json::parse(Make());
  hostile["a\x1b[31m"] = 1;
  for (const std::string& text :
       {hostile.dump(2) + "\n", std::string("{\"a\xff\xfe\": 1}"),
        std::string("\xff\xfe\x1b[31m")}) {
    ASSERT_TRUE(WriteFileAtomically(command.certificate, text).ok());
    std::ostringstream out;
    EXPECT_EQ(*RunCarbonVerify(command, out), ExitCode::kCheckFailed);
    EXPECT_TRUE(IsValidUtf8(out.str())) << out.str();
    EXPECT_THAT(out.str(), testing::Not(HasSubstr("\x1b")));
  }
}

TEST_F(CertificateTest, WattsThatNothingTakesAreRefused) {
  CarbonFootprintCommand command;
  command.common.history = dir_;
  command.grid.zone = "DE";
  command.grid.intensity = JoinPath(dir_, "grid.csv");
  ASSERT_TRUE(WriteFileAtomically(command.grid.intensity,
                                  "zone,start,end,gco2e_per_kwh,kind\n"
                                  "DE,2026-01-01T00:00:00Z,"
                                  "2026-02-01T00:00:00Z,300,average\n")
                  .ok());
  command.model.device_watts = 700;
  command.records = {inputs_.base};
  std::ostringstream out;
  EXPECT_THAT(std::string(RunCarbonFootprint(command, out).status().message()),
              HasSubstr("--watts=700 has no effect"));
  EXPECT_EQ(out.str(), "");
  command.records.push_back(Record(3, {1, 1}, /*metered=*/false));
  const auto code = RunCarbonFootprint(command, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kOk);
}

TEST_F(CertificateTest, RefusesRunsThatShareNothingAndInputsWithoutSense) {
  inputs_.filter = "softmax";
  EXPECT_THAT(
      std::string(MakeCertificate(inputs_, history_).status().message()),
      HasSubstr("have no benchmark in common"));
  inputs_.filter = "(";
  EXPECT_FALSE(MakeCertificate(inputs_, history_).ok());
  inputs_.filter = "";
  inputs_.pue = .5;
  EXPECT_THAT(
      std::string(MakeCertificate(inputs_, history_).status().message()),
      HasSubstr("pue is 0.5"));
}

TEST_F(CertificateTest, ThePageHoldsWhatIsHostileAsText) {
  inputs_.embodied_source = "<script>alert('x')</script>";
  const std::string page = *CertificatePage(Make());
  EXPECT_THAT(page, testing::Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_FALSE(CertificatePage("{}").ok());
  EXPECT_FALSE(CertificatePage("[").ok());
}

}  // namespace
}  // namespace optrail::carbon
