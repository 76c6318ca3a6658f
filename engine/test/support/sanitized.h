#pragma once

// For tests: THALWEG_SANITIZED is 1 under the address or thread sanitizer.

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define THALWEG_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define THALWEG_SANITIZED 1
#endif
#endif
#ifndef THALWEG_SANITIZED
#define THALWEG_SANITIZED 0
#endif
