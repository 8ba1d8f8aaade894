"""ISO 4217: the currencies money may be in, and how many decimals each has.

The active codes of the standard's list one that name money people pay with: fund codes, metals and test codes are
left out. Amounts are integers of the minor unit everywhere (API.md, Conventions), so the exponent is for showing only.
"""

from __future__ import annotations

_TWO_DECIMALS = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP"
    " CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES"
    " KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK"
    " NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB"
    " TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
)
_NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"

EXPONENTS: dict[str, int] = {
    code: exponent
    for exponent, codes in ((2, _TWO_DECIMALS), (0, _NO_DECIMALS), (3, _THREE_DECIMALS))
    for code in codes.split()
}
"""Currency code to the number of decimals of its major unit: CNY 2, JPY 0, KWD 3."""
