import { useEffect, useState } from "react";

/** The value once it has rested for a while. */
export function useRested<Value>(value: Value, forMs = 250): Value {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), forMs);
    return () => clearTimeout(timer);
  }, [value, forMs]);
  return rested;
}
