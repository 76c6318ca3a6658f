#pragma once

// For tests: RULES_SANITIZED is 1 under the address or thread sanitizer.

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RULES_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define RULES_SANITIZED 1
#endif
#endif
#ifndef RULES_SANITIZED
#define RULES_SANITIZED 0
#endif
