#include "capture/wal/wal_folder.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "dictionary/dictionary_file.h"
#include "dictionary/first_contents_file.h"

namespace thalweg::capture {

namespace {

using nlohmann::json;

constexpr const char* kState = "mining.json";
constexpr std::string_view kDictionary = "dictionary-";
constexpr size_t kStateBytesMax = 65536;
constexpr mode_t kMode = 0600;

base::Lsn lsn_in(const json& document, const char* member) {
  return base::parse_lsn(document.at(member).get<std::string>()).value_or(base::Lsn{});
}

base::Result<void> remove_file(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::remove(path, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "remove " + path.string()));
  return {};
}

}  // namespace

base::Result<std::optional<MiningState>> WalFolder::read_state() const {
  std::error_code missing;
  if (!std::filesystem::exists(path_ / kState, missing)) return std::nullopt;
  THALWEG_ASSIGN(const std::string text, base::read_file(path_ / kState, kStateBytesMax));
  try {
    const json in = json::parse(text);
    return MiningState{.system_identifier = in.at("system_identifier").get<std::string>(),
                       .kept_from = lsn_in(in, "kept_from"),
                       .started_at = lsn_in(in, "started_at"),
                       .confirmed = lsn_in(in, "confirmed"),
                       .restart = lsn_in(in, "restart")};
  } catch (const json::exception& exception) {
    return base::fail(base::ErrorCode::file_error,
                      fmt::format("{} is damaged: {}", (path_ / kState).string(), exception.what()),
                      base::ErrorSide::engine);
  }
}

base::Result<void> WalFolder::write_state(const MiningState& state) const {
  const json out = {{"system_identifier", state.system_identifier},
                    {"kept_from", base::to_string(state.kept_from)},
                    {"started_at", base::to_string(state.started_at)},
                    {"confirmed", base::to_string(state.confirmed)},
                    {"restart", base::to_string(state.restart)}};
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
  saved_.clear();
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kDictionary)) continue;
    uint64_t position = 0;
    const char* const last = name.data() + name.size();
    const auto [stopped, error] = std::from_chars(name.data() + kDictionary.size(), last, position, 16);
    if (error == std::errc{} && stopped == last) saved_.push_back({position});
  }
  if (failed) return std::unexpected(base::file_error(failed.value(), "list " + path_.string()));
  std::ranges::sort(saved_);
  return {};
}

std::optional<base::Lsn> WalFolder::newest_before(base::Lsn restart) const {
  const auto behind = std::ranges::upper_bound(saved_, restart);
  return behind == saved_.begin() ? std::nullopt : std::optional{*std::prev(behind)};
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
  if (const auto newest = newest_before(state.restart)) {
    THALWEG_ASSIGN(dictionary::Dictionary dictionary, dictionary::DictionaryFile::load(dictionary_at(*newest)));
    return MiningBegin{.dictionary = std::move(dictionary), .from = *newest};
  }
  THALWEG_ASSIGN(dictionary::FirstContents contents, dictionary::load_first_contents(first_contents()));
  THALWEG_ASSIGN(dictionary::Dictionary dictionary, dictionary::Dictionary::begin(std::move(contents)));
  return MiningBegin{.dictionary = std::move(dictionary), .from = state.kept_from};
}

base::Result<base::Lsn> WalFolder::drop_unneeded(const MiningState& state) {
  const auto newest = newest_before(state.restart);
  if (!newest) return state.kept_from;
  THALWEG_TRY(remove_file(first_contents()));
  while (saved_.front() < *newest) {
    THALWEG_TRY(remove_file(dictionary_at(saved_.front())));
    saved_.erase(saved_.begin());
  }
  return *newest;
}

}  // namespace thalweg::capture
