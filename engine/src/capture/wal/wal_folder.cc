#include "capture/wal/wal_folder.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "dictionary/dictionary_file.h"
#include "dictionary/first_contents_file.h"
#include "shipment/staging.h"

namespace thalweg::capture {

namespace {

using nlohmann::json;

constexpr const char* kState = "mining.json";
constexpr std::string_view kDictionary = "dictionary-";
constexpr size_t kStateBytesMax = 65536;
constexpr mode_t kMode = 0600;
// Beyond so many every second one goes, but for those with a dictionary, of which there are few.
constexpr ptrdiff_t kEarlierMax = 64;
// Dictionaries that only searches need: so many, and so much of what is kept, at most. Else those go that are nearest
// to their neighbours, but for the oldest one: a search then begins a little earlier.
constexpr size_t kKeptDictionariesMax = 16;
constexpr uint64_t kKeptDictionariesShare = 4;

base::Lsn lsn_in(const json& document, const char* member) {
  return base::parse_lsn(document.at(member).get<std::string>()).value_or(base::Lsn{});
}

MiningPosition position_in(const json& document) {
  return {.confirmed = lsn_in(document, "confirmed"),
          .restart = lsn_in(document, "restart"),
          .time = {document.value("time", int64_t{0})},
          .has_dictionary = document.value("has_dictionary", false)};
}

json json_of(const MiningPosition& position) {
  return {{"confirmed", base::to_string(position.confirmed)},
          {"restart", base::to_string(position.restart)},
          {"time", position.time.value},
          {"has_dictionary", position.has_dictionary}};
}

base::Result<void> remove_file(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::remove(path, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "remove " + path.string()));
  return {};
}

}  // namespace

void MiningState::advance(MiningPosition to) {
  if (to == at) return;
  earlier.push_back(std::exchange(at, to));
  const auto is_plain = [](const MiningPosition& position) { return !position.has_dictionary; };
  if (std::ranges::count_if(earlier, is_plain) <= kEarlierMax) return;
  bool keeps = true;
  std::erase_if(earlier,
                [&](const MiningPosition& position) { return is_plain(position) && !std::exchange(keeps, !keeps); });
}

base::Result<std::optional<MiningState>> WalFolder::read_state() const {
  std::error_code missing;
  if (!std::filesystem::exists(path_ / kState, missing)) return std::nullopt;
  THALWEG_ASSIGN(const std::string text, base::read_file(path_ / kState, kStateBytesMax));
  try {
    const json in = json::parse(text);
    MiningState state{.system_identifier = in.at("system_identifier").get<std::string>(),
                      .kept_from = lsn_in(in, "kept_from"),
                      .started_at = lsn_in(in, "started_at"),
                      .at = position_in(in),
                      .segment_bytes = in.value("segment_bytes", MiningState{}.segment_bytes)};
    // An earlier engine has not written it.
    for (const json& position : in.value("earlier", json::array())) state.earlier.push_back(position_in(position));
    return state;
  } catch (const json::exception& exception) {
    return base::fail(base::ErrorCode::file_error,
                      fmt::format("{} is damaged: {}", (path_ / kState).string(), exception.what()),
                      base::ErrorSide::engine);
  }
}

base::Result<void> WalFolder::write_state(const MiningState& state) const {
  json out = json_of(state.at);
  out["system_identifier"] = state.system_identifier;
  out["kept_from"] = base::to_string(state.kept_from);
  out["started_at"] = base::to_string(state.started_at);
  out["segment_bytes"] = state.segment_bytes;
  out["earlier"] = json::array();
  for (const MiningPosition& position : state.earlier) out["earlier"].push_back(json_of(position));
  THALWEG_TRY(base::make_folders(path_));
  return base::write_file_atomically(path_ / kState, out.dump(), kMode);
}

base::Result<void> WalFolder::clear() const {
  // The state first: without it nothing of the rest counts.
  THALWEG_TRY(remove_file(path_ / kState));
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "remove " + path_.string()));
  return base::make_folders(path_);
}

std::filesystem::path WalFolder::dictionary_at(base::Lsn position) const {
  return path_ / fmt::format("{}{:016X}", kDictionary, position.value);
}

base::Result<void> WalFolder::find_dictionaries() {
  THALWEG_ASSIGN(saved_, saved());
  return {};
}

base::Result<std::vector<base::Lsn>> WalFolder::saved() const {
  std::vector<base::Lsn> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kDictionary)) continue;
    uint64_t position = 0;
    const char* const last = name.data() + name.size();
    const auto [stopped, error] = std::from_chars(name.data() + kDictionary.size(), last, position, 16);
    if (error == std::errc{} && stopped == last) found.push_back({position});
  }
  if (failed) return std::unexpected(base::file_error(failed.value(), "list " + path_.string()));
  std::ranges::sort(found);
  return found;
}

base::Result<dictionary::Dictionary> WalFolder::load(base::Lsn position) const {
  return dictionary::DictionaryFile::load(dictionary_at(position));
}

std::optional<base::Lsn> WalFolder::newest_before(base::Lsn restart) const {
  const auto behind = std::ranges::upper_bound(saved_, restart);
  return behind == saved_.begin() ? std::nullopt : std::optional{*std::prev(behind)};
}

bool WalFolder::has_dictionary_for(base::Lsn restart) const {
  std::error_code missing;
  return newest_before(restart) || std::filesystem::exists(first_contents(), missing);
}

base::Result<bool> WalFolder::save(const dictionary::Dictionary& dictionary) {
  const base::Lsn position = dictionary.position();
  if (std::ranges::binary_search(saved_, position)) return true;
  THALWEG_ASSIGN(const bool is_saved, dictionary::DictionaryFile::save(dictionary, dictionary_at(position)));
  if (is_saved) saved_.insert(std::ranges::upper_bound(saved_, position), position);
  return is_saved;
}

base::Result<MiningBegin> WalFolder::begin(const MiningState& state) {
  THALWEG_TRY(find_dictionaries());
  if (const auto newest = newest_before(state.at.restart)) {
    THALWEG_ASSIGN(dictionary::Dictionary dictionary, load(*newest));
    return MiningBegin{.dictionary = std::move(dictionary), .from = *newest};
  }
  THALWEG_ASSIGN(dictionary::FirstContents contents, dictionary::load_first_contents(first_contents()));
  THALWEG_ASSIGN(dictionary::Dictionary dictionary, dictionary::Dictionary::begin(std::move(contents)));
  return MiningBegin{.dictionary = std::move(dictionary), .from = state.kept_from};
}

base::Result<std::optional<base::Lsn>> WalFolder::left_at(const shipment::WalIdentity& source) const {
  THALWEG_ASSIGN(const auto staged, shipment::staged_segments(staging(), source.segment_bytes));
  if (staged.empty()) return std::nullopt;
  const auto timeline = static_cast<int>(staged.back().timeline);
  if (timeline == source.history.timeline()) return std::nullopt;
  const auto end = source.history.end_of(timeline);
  if (end) return end;
  return base::fail(base::ErrorCode::source_diverged,
                    fmt::format("The source is on timeline {}, and has never been on timeline {}, of which the engine "
                                "has staged WAL.",
                                source.history.timeline(), timeline));
}

base::Result<std::optional<MiningState>> WalFolder::back_to(base::Lsn end, const MiningState& state) {
  THALWEG_TRY(find_dictionaries());
  MiningState before = state;
  while (before.at.confirmed > end) {
    if (before.earlier.empty()) return std::nullopt;
    before.at = before.earlier.back();
    before.earlier.pop_back();
  }
  if (!has_dictionary_for(before.at.restart)) return std::nullopt;
  return before;
}

base::Result<base::Lsn> WalFolder::reaches_back_to(const MiningState& state) {
  THALWEG_TRY(find_dictionaries());
  for (const MiningPosition& position : state.earlier) {
    if (has_dictionary_for(position.restart)) return position.confirmed;
  }
  return state.at.confirmed;
}

base::Result<void> WalFolder::cut_back(base::Lsn end, const MiningState& state) {
  THALWEG_TRY(find_dictionaries());
  while (!saved_.empty() && saved_.back() > end) {
    THALWEG_TRY(remove_file(dictionary_at(saved_.back())));
    saved_.pop_back();
  }
  return write_state(state);
}

size_t WalFolder::dictionaries() const {
  return static_cast<size_t>(saved_.end() - std::ranges::lower_bound(saved_, needed_));
}

base::Lsn WalFolder::oldest_kept(base::Lsn needed, const Keeping& keeping) const {
  if (keeping.bytes == 0) return needed;
  const base::Lsn wanted{needed.value - std::min(needed.value, keeping.bytes)};
  const base::Lsn oldest = newest_before(wanted).value_or(saved_.front());
  if (oldest >= keeping.possible_from) return std::min(oldest, needed);
  const auto possible = std::ranges::lower_bound(saved_, keeping.possible_from);
  return possible == saved_.end() ? needed : std::min(*possible, needed);
}

base::Result<void> WalFolder::thin(MiningState& state, const Keeping& keeping) {
  uint64_t bytes = 0;
  std::vector<uint64_t> sizes;
  for (auto at = saved_.begin(); *at < needed_; ++at) {
    std::error_code failed;
    const auto size = std::filesystem::file_size(dictionary_at(*at), failed);
    sizes.push_back(failed ? 0 : size);
    bytes += sizes.back();
  }
  while (sizes.size() > kKeptDictionariesMax || (sizes.size() > 1 && bytes > keeping.bytes / kKeptDictionariesShare)) {
    size_t nearest = 1;
    const auto gap = [&](size_t at) { return saved_[at + 1].value - saved_[at - 1].value; };
    for (size_t at = 2; at < sizes.size(); ++at) {
      if (gap(at) < gap(nearest)) nearest = at;
    }
    const base::Lsn gone = saved_[nearest];
    THALWEG_TRY(remove_file(dictionary_at(gone)));
    std::erase_if(state.earlier, [&](const MiningPosition& position) {
      return position.has_dictionary && position.confirmed == gone;
    });
    bytes -= sizes[nearest];
    saved_.erase(saved_.begin() + static_cast<ptrdiff_t>(nearest));
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(nearest));
  }
  return {};
}

base::Result<base::Lsn> WalFolder::drop_unneeded(MiningState& state, const Keeping& keeping) {
  const auto needed = newest_before(state.at.restart);
  if (!needed) return state.kept_from;
  needed_ = *needed;
  // With them a destination that was restored to a moment of its copy can be mined for.
  std::error_code missing;
  keeps_first_ = needed_.value - state.kept_from.value <= keeping.bytes && state.kept_from >= keeping.possible_from &&
                 std::filesystem::exists(first_contents(), missing);
  if (keeps_first_) {
    THALWEG_TRY(thin(state, keeping));
    return state.kept_from;
  }
  THALWEG_TRY(remove_file(first_contents()));
  const base::Lsn oldest = oldest_kept(*needed, keeping);
  while (saved_.front() < oldest) {
    THALWEG_TRY(remove_file(dictionary_at(saved_.front())));
    saved_.erase(saved_.begin());
  }
  std::erase_if(state.earlier, [&](const MiningPosition& position) { return position.restart < oldest; });
  THALWEG_TRY(thin(state, keeping));
  return oldest;
}

}  // namespace thalweg::capture
