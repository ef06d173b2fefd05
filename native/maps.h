/* Scalar maps of kernels on vectors. The polynomials are printed by coefficients.py; the errors
 * stated here are tested over the whole range (tests/test_native_maps.py). */
#ifndef SKETCHMEANS_MAPS_H
#define SKETCHMEANS_MAPS_H

#include "vectors.h"

#if SM_DOUBLE
#define MANTISSA 52
#define BIAS 1023
#define ROUNDER 0x1.8p52 /* added and taken away, it rounds to a whole number */
#define LOWEST (-1077)   /* 2^LOWEST rounds to zero … */
#define HIGHEST 1025     /* … and 2^HIGHEST is infinite */
#define LN2_HIGH 0x1.62e42fefa0000p-1 /* so few bits that its product with n is exact */
#define LN2_LOW 0x1.cf79abc9e3b39p-40
#define SATURATED 20.0 /* tanh rounds to 1 beyond */
#else
#define MANTISSA 23
#define BIAS 127
#define ROUNDER 0x1.8p23f
#define LOWEST (-152)
#define HIGHEST 129
#define LN2_HIGH 0x1.62e4p-1f
#define LN2_LOW 0x1.7f7d1cp-20f
#define SATURATED 10.0f
#endif
#define LOG2_E ((real)1.44269504088896340736)

/* AVX-512 alone rounds to a whole number of any size, and scales by 2 to that power. */
#if defined(__AVX512F__) && SM_DOUBLE
#define NEAREST(t) ((vec)_mm512_roundscale_pd((__m512d)(t), 8))
#define SCALED(value, n) ((vec)_mm512_scalef_pd((__m512d)(value), (__m512d)(n)))
#elif defined(__AVX512F__)
#define NEAREST(t) ((vec)_mm512_roundscale_ps((__m512)(t), 8))
#define SCALED(value, n) ((vec)_mm512_scalef_ps((__m512)(value), (__m512)(n)))
#endif

/* value · 2^n for a whole n in [LOWEST, HIGHEST] and a value near 1, rounded once. `rounded` is
 * n + ROUNDER: its last bits are n. */
INLINE vec times_power(vec value, vec rounded) {
#if defined(SCALED)
    return SCALED(value, rounded - ROUNDER);
#else
    /* In two steps, since 2^n may lie outside the exponents of a normal number. */
    ints n = (ints)rounded - (ints)splat(ROUNDER), half = n >> 1;
    return value * (vec)((half + BIAS) << MANTISSA) * (vec)((n - half + BIAS) << MANTISSA);
#endif
}

/* 2^t: at most 2 ulp off in float, 5e-16 in double; 0 and infinity beyond, NaN from NaN. */
INLINE vec exp2_of(vec t) {
#if defined(SCALED)
    vec n = NEAREST(t); /* infinite where t is; then f is NaN, and scaled to 0 or infinity */
    vec f = t - n;
#else
    t = at_most(at_least(t, LOWEST), HIGHEST);
    vec rounded = t + ROUNDER;
    vec f = t - (rounded - ROUNDER);
#endif
#if SM_DOUBLE
    /* Even and odd powers apart: one chain of twelve steps would leave the adders idle. */
    vec g = f * f;
    vec even = splat(7.07419429728852100418e-9), odd = splat(4.45581790833606456366e-10);
    even = even * g + 1.32154325359123761665e-6, odd = odd * g + 1.01780570877339411041e-7;
    even = even * g + 1.54035304637243542086e-4, odd = odd * g + 1.52527338415567725893e-5;
    even = even * g + 9.61812910758725666806e-3, odd = odd * g + 1.33335581464064706971e-3;
    even = even * g + 2.40226506959101595672e-1, odd = odd * g + 5.55041086648216270395e-2;
    even = even * g + 1.0, odd = odd * g + 6.93147180559945309254e-1;
    vec p = odd * f + even;
#else
    vec p = splat(1.54614446985691293801e-4f);
    p = p * f + 1.34004281776158379349e-3f;
    p = p * f + 9.61805667852463807431e-3f;
    p = p * f + 5.55032722667030205893e-2f;
    p = p * f + 2.40226509222887580706e-1f;
    p = p * f + 6.93147206702832595772e-1f;
    p = p * f + 1.0f;
#endif
#if defined(SCALED)
    return SCALED(p, n);
#else
    return times_power(p, rounded);
#endif
}

/* tanh x = m / (m + 2) with m = e^{2|x|} − 1, which keeps the digits of small x, or 1 − 2 / (m + 2),
 * which keeps the last one of large x: at most 2 ulp off in float, 5e-16 in double. */
INLINE vec tanh_of(vec x) {
    vec twice = 2 * at_most(magnitude(x), SATURATED);
    vec rounded = twice * LOG2_E + ROUNDER;
    vec n = rounded - ROUNDER;
    vec r = (twice - n * LN2_HIGH) - n * LN2_LOW;
#if SM_DOUBLE
    vec q = splat(2.09146793765983349877e-9);
    q = q * r + 2.51052063739570111075e-8;
    q = q * r + 2.75572736613485886545e-7;
    q = q * r + 2.75572554257464342818e-6;
    q = q * r + 2.48015873255333638761e-5;
    q = q * r + 1.98412698748004919808e-4;
    q = q * r + 1.38888888888837524166e-3;
    q = q * r + 8.33333333332614088398e-3;
    q = q * r + 4.16666666666666697515e-2;
    q = q * r + 1.66666666666666709863e-1;
    q = q * r + 0.5;
#else
    vec q = splat(1.98909808697503256944e-4f);
    q = q * r + 1.39336410319867011445e-3f;
    q = q * r + 8.33331093444886846851e-3f;
    q = q * r + 4.16664650060400487607e-2f;
    q = q * r + 1.66666666816142557060e-1f;
    q = q * r + 5.00000001345772715295e-1f;
#endif
    vec square = r * r;
    vec small = q * square + r; /* e^r − 1, and what rounding took from it: */
    vec lost = (r - small) + q * square;
    vec power = times_power(splat(1), rounded);
    vec m = small * power + (power - 1);
    lost = lost * power + (((power - 1) - m) + small * power);
    vec divisor = m + 2;
    ints large = m > 2;
    vec quotient = select_from(large, splat(2), m) / divisor;
    /* What m and the divisor lost is worth an ulp; 1 / (m + 2) need not be exact for that. */
    vec mended = quotient + (lost - quotient * (m - (divisor - 2))) * ((real)0.5 - (real)0.125 * m);
    vec result = select_from(large, 1 - quotient, mended);
    ints sign = (ints)x ^ (ints)magnitude(x);
    return (vec)((ints)result | sign);
}

/* x^degree by multiplications, in the order of the bits of the degree. */
INLINE vec power_of(vec x, unsigned degree) {
    vec result = x;
    for (int bit = 30 - __builtin_clz(degree); bit >= 0; bit--) {
        result *= result;
        if (degree >> bit & 1) result *= x;
    }
    return result;
}

#endif
