"""What a site says of how long its pages hold, and pages that it may say are still as they were."""
